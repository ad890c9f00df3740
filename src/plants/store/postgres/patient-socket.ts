/**
 * Undocumented behavior of pg (tested with 8.23): it connects the result of the documented option `stream` by calling
 * `connect(port, host)`, or `connect(path)` for a Unix socket.
 */
import { lookup, type LookupAddress } from 'node:dns';
import { Socket } from 'node:net';

/** The part of the connect time-out that the addresses of a host share. The driver reports its own time-out later. */
const SHARED_PART = 0.9;

/**
 * A socket that shares the time for a connection between the addresses of a host name. Node.js gives up an address after
 * 250 ms, so a server with two addresses and a slow route would never be reached.
 */
export class PatientSocket extends Socket {
  /** @param connectTimeoutMs how long the driver waits for a connection */
  constructor(private readonly connectTimeoutMs: number) {
    super();
  }

  override connect(...options: unknown[]): this {
    const [port, host] = options;
    if (typeof port === 'number' && typeof host === 'string') this.connectToHost(port, host);
    else super.connect(...(options as [path: string]));
    return this;
  }

  private connectToHost(port: number, host: string): void {
    lookup(host, { all: true }, (error, addresses) => {
      // The driver has stopped waiting.
      if (this.destroyed) return;
      if (error) this.destroy(error);
      else this.connectToAddresses(port, host, addresses);
    });
  }

  private connectToAddresses(port: number, host: string, addresses: LookupAddress[]): void {
    const sharedMs = this.connectTimeoutMs * SHARED_PART;
    super.connect({
      port,
      host,
      lookup: (_host, _options, callback) => {
        callback(null, addresses);
      },
      autoSelectFamilyAttemptTimeout: Math.ceil(sharedMs / addresses.length),
    });
  }
}

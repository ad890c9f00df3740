import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';

const TYPE_A = 1;

/** A DNS server (RFC 1035) that resolves some names to IPv4 addresses, with a TTL of 0. */
export class NameServer {
  /** The IPv4 addresses by name. */
  readonly addresses = new Map<string, string>();

  private constructor(private readonly socket: Socket) {
    socket.on('message', (query, { port, address }) => {
      socket.send(this.respond(query), port, address);
    });
  }

  /** Listens on a free port of 127.0.0.1. */
  static async start(): Promise<NameServer> {
    const socket = createSocket('udp4').bind(0, '127.0.0.1');
    await once(socket, 'listening');
    return new NameServer(socket.unref());
  }

  get port(): number {
    return this.socket.address().port;
  }

  close(): void {
    this.socket.close();
  }

  private respond(query: Buffer): Buffer {
    const end = query.indexOf(0, 12) + 5;
    const address = this.addresses.get(parseName(query));
    const hasAddress = address !== undefined && query.readUInt16BE(end - 4) === TYPE_A;
    // The flags: a response without an error. Then the counts: one question, at most one answer.
    const flagsAndCounts = [0x84, 0, 0, 1, 0, Number(hasAddress), 0, 0, 0, 0];
    const header = [query.subarray(0, 2), Buffer.from(flagsAndCounts), query.subarray(12, end)];
    if (!hasAddress) return Buffer.concat(header);
    // A pointer to the name in the question, type A, class IN, a TTL of 0 seconds, 4 bytes of data.
    const record = [0xc0, 12, 0, TYPE_A, 0, 1, 0, 0, 0, 0, 0, 4, ...address.split('.').map(Number)];
    return Buffer.concat([...header, Buffer.from(record)]);
  }
}

/** Returns the name in the question. It consists of labels, each after a byte with its length. */
function parseName(query: Buffer): string {
  const labels: string[] = [];
  for (let at = 12, length = query[at]; length; length = query[at]) {
    labels.push(query.toString('latin1', at + 1, (at += length + 1)));
  }
  return labels.join('.');
}

import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { listen } from './listen';

/** Forwards connections to a server, which it can keep silent, cut, or replace by another one. */
export class Proxy {
  private readonly sockets = new Set<Socket>();
  private isSilent = false;
  /** How many connections it has accepted. */
  accepted = 0;
  private readonly server = createServer((client) => {
    this.accepted++;
    const server = connect(this.target, '127.0.0.1');
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      this.sockets.add(from);
      if (this.isSilent) from.pause();
      from.on('data', (chunk) => to.write(chunk));
      from.on('error', () => to.destroy());
      from.on('close', () => {
        this.sockets.delete(from);
        to.destroySoon();
      });
    }
  });

  private constructor(private target: number) {}

  /** @param target the port of the server, on the loopback interface */
  static async start(target: number): Promise<Proxy> {
    const proxy = new Proxy(target);
    await listen(proxy.server);
    return proxy;
  }

  get url(): string {
    const { port } = this.server.address() as AddressInfo;
    return `postgres://postgres@127.0.0.1:${port}/postgres`;
  }

  /** Forwards nothing more and closes nothing, as a network that drops packets. */
  silence(): void {
    this.isSilent = true;
    for (const socket of this.sockets) socket.pause();
  }

  /** Forwards new connections to another server. Present ones stay as they are, silent for example. */
  lead(target: number): void {
    this.target = target;
    this.isSilent = false;
  }

  /** Forwards again, first what has come meanwhile. */
  resume(): void {
    this.isSilent = false;
    for (const socket of this.sockets) socket.resume();
  }

  /** Breaks all connections. */
  cut(): void {
    for (const socket of this.sockets) socket.resetAndDestroy();
  }

  async stop(): Promise<void> {
    this.server.close();
    this.cut();
    await once(this.server, 'close');
  }
}

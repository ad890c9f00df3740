import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { listen } from './listen';

/** Forwards connections to a server. It can pause or reset them, and forward new ones to another server. */
export class TcpProxy {
  private readonly sockets = new Set<Socket>();
  private isPaused = false;
  /** The number of accepted connections. */
  accepted = 0;
  private readonly server = createServer((client) => {
    this.accepted++;
    const server = connect(this.target, '127.0.0.1');
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      this.sockets.add(from);
      if (this.isPaused) from.pause();
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
  static async start(target: number): Promise<TcpProxy> {
    const proxy = new TcpProxy(target);
    await listen(proxy.server);
    return proxy;
  }

  get url(): string {
    const { port } = this.server.address() as AddressInfo;
    return `postgres://postgres@127.0.0.1:${port}/postgres`;
  }

  /** Stops forwarding, like a network that drops packets. */
  pause(): void {
    this.isPaused = true;
    for (const socket of this.sockets) socket.pause();
  }

  /** Forwards new connections to another server. Open connections keep their server, and stay paused if they were. */
  redirect(target: number): void {
    this.target = target;
    this.isPaused = false;
  }

  /** Forwards again, starting with what arrived during the pause. */
  resume(): void {
    this.isPaused = false;
    for (const socket of this.sockets) socket.resume();
  }

  /** Resets all connections. */
  reset(): void {
    for (const socket of this.sockets) socket.resetAndDestroy();
  }

  async stop(): Promise<void> {
    this.server.close();
    this.reset();
    await once(this.server, 'close');
  }
}

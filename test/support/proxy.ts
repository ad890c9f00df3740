import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

/** A TCP proxy in front of a server, which can fall silent as a network does that drops packets. */
export class Proxy {
  private readonly sockets = new Set<Socket>();
  private isSilent = false;

  private constructor(
    private readonly server: Server,
    /** The port that later connections are forwarded to. */
    public target: number,
  ) {
    server.on('connection', (socket) => {
      this.forward(socket);
    });
  }

  /** @param target the port of the server, on the loopback interface */
  static async start(target: number): Promise<Proxy> {
    const proxy = new Proxy(createServer({ allowHalfOpen: true }), target);
    proxy.server.listen(0, '127.0.0.1');
    await once(proxy.server, 'listening');
    return proxy;
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  get connections(): number {
    return this.sockets.size / 2;
  }

  /** Forwards nothing more in either direction, and closes nothing. New connections get no answer. */
  silence(): void {
    this.isSilent = true;
    for (const socket of this.sockets) socket.pause();
  }

  /** Forwards again, first what has come meanwhile. */
  resume(): void {
    this.isSilent = false;
    for (const socket of this.sockets) socket.resume();
  }

  /** Breaks the oldest connections, as the end of a partition may. */
  reset(count = this.connections): void {
    for (const socket of [...this.sockets].slice(0, 2 * count)) socket.resetAndDestroy();
  }

  async stop(): Promise<void> {
    this.server.close();
    for (const socket of this.sockets) socket.destroy();
    await once(this.server, 'close');
  }

  private forward(client: Socket): void {
    const server = connect({ port: this.target, host: '127.0.0.1', allowHalfOpen: true });
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      this.sockets.add(from);
      from.on('data', (chunk) => to.write(chunk));
      from.on('end', () => to.end());
      from.on('error', () => to.destroy());
      from.on('close', () => {
        this.sockets.delete(from);
        to.destroy();
      });
      if (this.isSilent) from.pause();
    }
  }
}

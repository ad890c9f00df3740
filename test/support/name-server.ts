import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';

const TYPE_A = 1;

/** A DNS server, RFC 1035, that knows the IPv4 addresses of some names, for no time at all. */
export class NameServer {
  readonly addresses = new Map<string, string>();

  private constructor(private readonly socket: Socket) {
    socket.on('message', (query, { port, address }) => {
      socket.send(this.answer(query), port, address);
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

  private answer(query: Buffer): Buffer {
    const end = query.indexOf(0, 12) + 5;
    const address = this.addresses.get(nameIn(query));
    const hasAddress = address !== undefined && query.readUInt16BE(end - 4) === TYPE_A;
    // A response without an error; one question; one answer or none.
    const counts = [0x84, 0, 0, 1, 0, Number(hasAddress), 0, 0, 0, 0];
    const head = [query.subarray(0, 2), Buffer.from(counts), query.subarray(12, end)];
    if (!hasAddress) return Buffer.concat(head);
    // The name of the question, type A, class IN, 0 seconds, 4 bytes.
    const record = [0xc0, 12, 0, TYPE_A, 0, 1, 0, 0, 0, 0, 0, 4, ...address.split('.').map(Number)];
    return Buffer.concat([...head, Buffer.from(record)]);
  }
}

/** The name of the question: labels, each behind a byte with its length. */
function nameIn(query: Buffer): string {
  const labels: string[] = [];
  for (let at = 12, length = query[at]; length; length = query[at]) {
    labels.push(query.toString('latin1', at + 1, (at += length + 1)));
  }
  return labels.join('.');
}

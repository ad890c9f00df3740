import { connect } from 'node:net';
import { TOKEN } from './application';

export interface LoadOptions {
  readonly url: URL;
  readonly connections: number;
  /** The next request, as it goes over the wire, a byte a character; undefined ends the connection that asks. */
  readonly next: () => { readonly id: number; readonly text: string } | undefined;
  readonly onAnswer?: (id: number, answer: { status: number; body: string }) => void;
  /** Milliseconds to wait before the next request after an answer of 503. */
  readonly backOff?: number;
}

/** How many requests were answered, by status, and how many got no complete answer. */
export type Counts = Partial<Record<number | 'lost', number>>;

export function creation(id: number, name = 'Fern'): { id: number; text: string } {
  const body = `{"id":${id},"name":"${name}"}`;
  const head = `POST /plants HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKEN}\r\nContent-Type: application/json\r\n`;
  return { id, text: `${head}Content-Length: ${body.length}\r\n\r\n${body}` };
}

/**
 * Puts a load on the service over raw sockets, each with one request at a time, and resolves once
 * all of them have ended. A connection that the service closes is not opened again.
 */
export async function putLoad(options: LoadOptions): Promise<Counts> {
  const counts: Counts = {};
  await Promise.all(Array.from({ length: options.connections }, () => drive(options, counts)));
  return counts;
}

async function drive(options: LoadOptions, counts: Counts): Promise<void> {
  const { url, next, onAnswer, backOff = 0 } = options;
  const count = (outcome: keyof Counts) => (counts[outcome] = (counts[outcome] ?? 0) + 1);
  const socket = connect(Number(url.port), url.hostname);
  socket.setNoDelay();
  let current: number | undefined;
  let received = '';

  const send = (): void => {
    const request = next();
    if (request === undefined) {
      socket.end();
      return;
    }
    current = request.id;
    socket.write(request.text, 'latin1');
  };

  socket.on('connect', send);
  socket.on('data', (chunk) => {
    received += chunk.toString('latin1');
    const headEnd = received.indexOf('\r\n\r\n');
    if (headEnd < 0 || current === undefined) return;
    const length = Number(/content-length: (\d+)/i.exec(received)?.[1] ?? 0);
    const end = headEnd + 4 + length;
    if (received.length < end) return;
    const status = Number(received.slice(9, 12));
    const id = current;
    current = undefined;
    const closes = /connection: close/i.test(received);
    const body = received.slice(headEnd + 4, end);
    received = '';
    count(status);
    onAnswer?.(id, { status, body });
    if (closes) socket.end();
    else if (status === 503 && backOff > 0) setTimeout(send, backOff);
    else send();
  });
  socket.on('error', () => undefined);
  await new Promise((resolve) => socket.once('close', resolve));
  if (current !== undefined) count('lost');
}

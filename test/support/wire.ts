import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { expectAsDeclared } from './contract';

/** One answer as it came over the wire. */
export interface WireAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
}

/** Sends bytes over a socket of their own and gives back all that comes until the server hangs up. */
export async function exchange(url: URL, request: string | Buffer): Promise<WireAnswer[]> {
  const socket = open(url);
  socket.write(request);
  return readAnswers(socket);
}

/** A connection to the server. */
export function open(url: URL): Socket {
  return connect(Number(url.port), url.hostname);
}

/** Everything that comes until the server hangs up. Errors are held against the OpenAPI document. */
export async function readAnswers(socket: Socket): Promise<WireAnswer[]> {
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  await once(socket, 'close');
  const answers = splitAnswers(Buffer.concat(chunks).toString()).map(parseAnswer);
  answers
    // The answer to HEAD has no body.
    .filter(
      ({ status, body }) => status >= 400 && body !== null && !ROUTING_STATUSES.includes(status),
    )
    .forEach(expectAsDeclared);
  return answers;
}

/** What paths and methods that there are not are answered with. */
const ROUTING_STATUSES = [404, 405];

/** Where the answers in a text begin and end, by their lengths. One that is cut off has no head. */
export function splitAnswers(text: string): { head: string; body: string }[] {
  if (text === '') return [];
  const end = text.indexOf('\r\n\r\n') + 4;
  if (end < 4) return [{ head: '', body: text }];
  const head = text.slice(0, end);
  const next = end + Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? 0);
  return [{ head, body: text.slice(end, next) }, ...splitAnswers(text.slice(next))];
}

function parseAnswer({ head, body }: { head: string; body: string }): WireAnswer {
  const [statusLine = '', ...fields] = head.trimEnd().split('\r\n');
  const headers = Object.fromEntries(
    fields.map((field) => {
      const colon = field.indexOf(':');
      return [field.slice(0, colon).toLowerCase(), field.slice(colon + 1).trim()];
    }),
  );
  return { status: Number(statusLine.split(' ')[1]), headers, body: JSON.parse(body || 'null') };
}

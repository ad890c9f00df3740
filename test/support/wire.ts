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
  const answers = parseAnswers(Buffer.concat(chunks).toString());
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

function parseAnswers(text: string): WireAnswer[] {
  const answers: WireAnswer[] = [];
  let rest = text;
  while (rest !== '') {
    const end = rest.indexOf('\r\n\r\n');
    const [statusLine = '', ...fields] = rest.slice(0, end).split('\r\n');
    const headers = Object.fromEntries(
      fields.map((field) => {
        const colon = field.indexOf(':');
        return [field.slice(0, colon).toLowerCase(), field.slice(colon + 1).trim()];
      }),
    );
    const bodyEnd = end + 4 + Number(headers['content-length'] ?? 0);
    answers.push({
      status: Number(statusLine.split(' ')[1]),
      headers,
      body: JSON.parse(rest.slice(end + 4, bodyEnd) || 'null'),
    });
    rest = rest.slice(bodyEnd);
  }
  return answers;
}

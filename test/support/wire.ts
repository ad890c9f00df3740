import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { createPlantOperation, expectDeclaredResponse } from './contract';

/** A response as received on a socket. Header names are in lower case. */
export interface WireResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
}

/** Sends bytes on a new connection. Returns the responses until the server closes it. */
export async function exchange(url: URL, request: string | Buffer): Promise<WireResponse[]> {
  const socket = openConnection(url);
  socket.write(request);
  return readResponses(socket);
}

/** Opens a connection to the server. */
export function openConnection(url: URL): Socket {
  return connect(Number(url.port), url.hostname);
}

/** Reads responses until the server closes the connection. Checks errors against `POST /plants`, which has them all. */
export async function readResponses(socket: Socket): Promise<WireResponse[]> {
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  await once(socket, 'close');
  const responses = splitResponses(Buffer.concat(chunks).toString()).map(parseResponse);
  // The document does not declare the responses to unknown paths and methods.
  const isDeclared = ({ status }: WireResponse) => status >= 400 && ![404, 405].includes(status);
  for (const response of responses.filter(isDeclared)) {
    expectDeclaredResponse(createPlantOperation, response);
  }
  return responses;
}

/** Splits what was received into responses, by their Content-Length. Headers that are truncated become the body. */
function splitResponses(text: string): { head: string; body: string }[] {
  if (text === '') return [];
  const end = text.indexOf('\r\n\r\n') + 4;
  if (end < 4) return [{ head: '', body: text }];
  const head = text.slice(0, end);
  const next = end + Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? 0);
  return [{ head, body: text.slice(end, next) }, ...splitResponses(text.slice(next))];
}

function parseResponse({ head, body }: { head: string; body: string }): WireResponse {
  const fields = head.matchAll(/^([^:\r\n]+): *(.*)\r$/gm);
  const headers = Object.fromEntries(
    [...fields].map(([, name = '', value = '']) => [name.toLowerCase(), value]),
  );
  return { status: Number(head.split(' ')[1]), headers, body: JSON.parse(body || 'null') };
}

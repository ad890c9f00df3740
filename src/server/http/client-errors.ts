import { randomUUID } from 'node:crypto';
import { type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { MalformedRequestError, PlantStoreError } from '../../plants/errors/errors';
import type { Metrics } from '../monitoring/metrics';
import { securityHeaders } from '../../plants/http/error.filter';

/** How long a rejected client may take to read the response. */
const LINGER_MS = 2000;

/**
 * Responds to bytes that Node's HTTP parser rejects and to requests that time out: the events `clientError` of
 * a server. Each connection ends with such a response.
 */
export class ClientErrors {
  /** The responses of each connection that are not sent yet, in the order of their requests. */
  private readonly pending = new WeakMap<Socket, Set<ServerResponse>>();

  constructor(private readonly metrics: Metrics) {}

  /** Notes that a request has begun. */
  track(response: ServerResponse): void {
    const { socket } = response.req;
    const responses = this.pending.get(socket) ?? new Set();
    this.pending.set(socket, responses.add(response));
    response.once('close', () => responses.delete(response));
  }

  /** Handles the event `clientError`. */
  handle({ code = '' }: NodeJS.ErrnoException, socket: Socket): void {
    if (!code.startsWith('HPE_') && code !== 'ERR_HTTP_REQUEST_TIMEOUT') {
      // The client reset the connection, or the bytes are not TLS.
      socket.destroy();
      return;
    }
    // Node.js emits the event again for every later segment.
    if (!socket.writable) return;
    const responses = [...(this.pending.get(socket) ?? [])];
    const [first, last] = [responses[0], responses.at(-1)];
    if (first && (first.req.complete || first.headersSent)) {
      // The client would take the error for the response to an earlier request, which may store a plant.
      if (last?.headersSent === false) last.setHeader('Connection', 'close');
      return;
    }
    const error = createClientError(code);
    socket.end(formatResponse(error));
    setTimeout(() => socket.destroy(), LINGER_MS).unref();
    this.metrics.countError(error);
  }
}

function createClientError(code: string): PlantStoreError {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return new PlantStoreError('requestTimeout');
  if (code === 'HPE_HEADER_OVERFLOW') return new PlantStoreError('headersTooLarge');
  return new MalformedRequestError();
}

function formatResponse(error: PlantStoreError): string {
  const body = JSON.stringify(error.body);
  const status = error.getStatus();
  const headers = {
    // RFC 9110 section 6.6.1
    Date: new Date().toUTCString(),
    'X-Request-Id': randomUUID(),
    ...securityHeaders,
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': Buffer.byteLength(body),
    Connection: 'close',
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`;
}

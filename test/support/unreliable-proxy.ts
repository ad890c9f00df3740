import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { errorBodies } from './error-bodies';

/** A proxy before the service that fails twice. */
export interface UnreliableProxy {
  readonly origin: string;
  /** The origin of the service. */
  readonly target: string;
  /** What it did with each request, and the request's Idempotency-Key. */
  readonly seen: readonly { readonly what: string; readonly key: unknown }[];
  /** The header fields of the latest answer of the service. */
  readonly lastHeaders: IncomingHttpHeaders;
  /** Milliseconds from the refusal to the next request. */
  readonly pauseAfterRefusal: number;
  stop(): Promise<void>;
}

/**
 * Starts a proxy. It refuses the first request with 503 and a `Retry-After` of two seconds, passes the
 * second one on but closes the connection instead of answering, and passes on the others.
 */
export async function makeUnreliable(target: string): Promise<UnreliableProxy> {
  const seen: { what: string; key: unknown }[] = [];
  const times: number[] = [];
  let lastHeaders: IncomingHttpHeaders = {};

  const server = createServer((incoming, outgoing) => {
    times.push(performance.now());
    const what = ['unavailable', 'answer lost'][seen.length] ?? 'passed';
    seen.push({ what, key: incoming.headers['idempotency-key'] });
    if (what === 'unavailable') {
      incoming.resume();
      outgoing.writeHead(503, { 'Content-Type': 'application/json', 'Retry-After': '2' });
      outgoing.end(JSON.stringify(errorBodies.unavailable));
      return;
    }
    const { method, url = '/', headers } = incoming;
    const passed = request(new URL(url, target), { method, headers }, (answer) => {
      lastHeaders = answer.headers;
      if (what === 'answer lost') {
        answer.resume().once('end', () => incoming.socket.destroy());
      } else {
        outgoing.writeHead(answer.statusCode ?? 0, answer.headers);
        answer.pipe(outgoing);
      }
    });
    incoming.pipe(passed);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');

  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    target,
    seen,
    get lastHeaders() {
      return lastHeaders;
    },
    get pauseAfterRefusal() {
      return (times[1] ?? NaN) - (times[0] ?? NaN);
    },
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

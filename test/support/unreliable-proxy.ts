import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, request } from 'node:http';
import { pipeline } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { errorBodies } from './error-bodies';
import { listen } from './listen';

/** A fault that the proxy causes instead of forwarding both the request and the response. */
export type Fault =
  | {
      readonly status: number;
      readonly headers?: Record<string, string>;
      readonly body: string;
      /** Whether spaces follow the body until the connection closes: as many as fit, or a few. */
      readonly endless?: 'fast' | 'slow';
    }
  | 'response lost'
  | 'no response';

/** A proxy in front of the service that fails for the first requests. */
export interface UnreliableProxy {
  readonly origin: string;
  /** The requests: the fault, or the status of the forwarded response, and the time of arrival. */
  readonly seen: { what: unknown; headers: IncomingHttpHeaders; at: number; isOpen: boolean }[];
  stop(): Promise<void>;
}

async function* createSpaces(pace: 'fast' | 'slow'): AsyncGenerator<string> {
  for (;;) {
    if (pace === 'slow') await sleep(10);
    yield pace === 'slow' ? ' ' : ' '.repeat(2 ** 14);
  }
}

const FAULTS: readonly Fault[] = [
  { status: 503, headers: { 'Retry-After': '2' }, body: JSON.stringify(errorBodies.unavailable) },
  'response lost',
];

/**
 * Starts a proxy. `response lost` forwards the request, then closes the connection without a response.
 * `no response` leaves the request without a response.
 *
 * @param faults the faults of the first requests. By default, the first request gets 503 and a `Retry-After` of
 *   two seconds, and the response to the second is lost.
 */
export async function startUnreliableProxy(
  target: string,
  faults: readonly Fault[] = FAULTS,
): Promise<UnreliableProxy> {
  const seen: UnreliableProxy['seen'] = [];

  const server = createServer((incoming, outgoing) => {
    const fault = faults[seen.length];
    const what = typeof fault === 'object' ? fault.status : fault;
    const { headers: sent } = incoming;
    const at = performance.now();
    const record: (typeof seen)[number] = { what, headers: sent, at, isOpen: true };
    seen.push(record);
    outgoing.once('close', () => {
      record.isOpen = false;
    });
    if (fault === 'no response') return;
    if (typeof fault === 'object') {
      incoming.resume();
      outgoing.writeHead(fault.status, fault.headers);
      if (fault.endless === undefined) outgoing.end(fault.body);
      else {
        outgoing.write(fault.body);
        pipeline(createSpaces(fault.endless), outgoing, () => undefined);
      }
      return;
    }
    const { method, url = '/', headers } = incoming;
    const forwarded = request(new URL(url, target), { method, headers }, (response) => {
      if (fault === 'response lost') {
        response.resume().once('end', () => incoming.socket.destroy());
      } else {
        record.what = response.statusCode;
        outgoing.writeHead(response.statusCode ?? 0, response.headers);
        response.pipe(outgoing);
      }
    });
    // No service listens at the target.
    forwarded.once('error', () => incoming.socket.destroy());
    incoming.pipe(forwarded);
  });
  const { origin } = await listen(server);

  return {
    origin,
    seen,
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

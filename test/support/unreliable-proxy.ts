import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, request } from 'node:http';
import { pipeline } from 'node:stream';
import { errorBodies } from './error-bodies';
import { listen } from './listen';

/** What the proxy does with a request instead of passing it on and passing the answer back. */
export type Fault =
  | {
      readonly status: number;
      readonly headers?: Record<string, string>;
      readonly body: string;
      /** Whether spaces follow the body without end. */
      readonly isEndless?: boolean;
    }
  | 'answer lost'
  | 'no answer';

/** A proxy before the service that fails a few times. */
export interface UnreliableProxy {
  readonly origin: string;
  /** Of each request the fault, or the status that was passed back, and when it came. */
  readonly seen: { what: unknown; headers: IncomingHttpHeaders; at: number }[];
  /** Milliseconds from the refusal to the next request. */
  readonly pauseAfterRefusal: number;
  stop(): Promise<void>;
}

const FAULTS: readonly Fault[] = [
  { status: 503, headers: { 'Retry-After': '2' }, body: JSON.stringify(errorBodies.unavailable) },
  'answer lost',
];

function* spaces(start: string): Generator<string> {
  yield start;
  for (;;) yield ' '.repeat(2 ** 14);
}

/**
 * Starts a proxy. `answer lost` passes a request on but closes the connection instead of answering.
 *
 * @param faults what happens to the first requests; by default the first is refused with 503 and a
 *   `Retry-After` of two seconds, and the answer to the second is lost
 */
export async function makeUnreliable(
  target: string,
  faults: readonly Fault[] = FAULTS,
): Promise<UnreliableProxy> {
  const seen: UnreliableProxy['seen'] = [];

  const server = createServer((incoming, outgoing) => {
    const fault = faults[seen.length];
    const what = typeof fault === 'object' ? fault.status : fault;
    const record: (typeof seen)[number] = {
      what,
      headers: incoming.headers,
      at: performance.now(),
    };
    seen.push(record);
    if (fault === 'no answer') return;
    if (typeof fault === 'object') {
      incoming.resume();
      outgoing.writeHead(fault.status, fault.headers);
      if (fault.isEndless === true) pipeline(spaces(fault.body), outgoing, () => undefined);
      else outgoing.end(fault.body);
      return;
    }
    const { method, url = '/', headers } = incoming;
    const passed = request(new URL(url, target), { method, headers }, (answer) => {
      if (fault === 'answer lost') {
        answer.resume().once('end', () => incoming.socket.destroy());
      } else {
        record.what = answer.statusCode;
        outgoing.writeHead(answer.statusCode ?? 0, answer.headers);
        answer.pipe(outgoing);
      }
    });
    // While no service listens.
    passed.once('error', () => incoming.socket.destroy());
    incoming.pipe(passed);
  });
  const { origin } = await listen(server);

  return {
    origin,
    seen,
    get pauseAfterRefusal() {
      const [refusal = NaN, next = NaN] = seen.map(({ at }) => at);
      return next - refusal;
    },
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

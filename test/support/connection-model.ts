import fc from 'fast-check';
import { TOKEN } from './application';
import { exchangeInSegments, type Leaving } from './conversation';
import * as load from './load';

/** The `BODY_LIMIT` that the server under test must have. */
export const BODY_LIMIT = 1024;

/** A request that a client sends, or other bytes that end the connection, with the expected result. */
interface ClientMessage {
  /** Returns what the client sends, for a plant with the id. */
  readonly bytes: (id: number) => string;
  /** The statuses that the response may have. */
  readonly statuses: readonly number[];
  /** Whether it stores the plant with its id. */
  readonly creates: boolean;
  /** Whether the server ignores everything after it. */
  readonly endsConnection: boolean;
}

const CREATE = 'POST /plants HTTP/1.1';
const AUTHORIZED = `Host: x\r\nAuthorization: Bearer ${TOKEN}\r\nContent-Type: application/json\r\n`;
const plantBody = (id: number): string => `{"id":${id},"name":"Fern"}`;

/** Returns a create request with additional headers and the given request line. */
const creation = (id: number, headers = '', requestLine = CREATE): string =>
  load.createRequest(id).text.replace(`${CREATE}\r\n`, `${requestLine}\r\n${headers}`);

/** Returns a request with a body in chunks of `size` characters, with chunk extensions and a trailer. */
function chunked(body: string, headers = '', size = 5, requestLine = CREATE): string {
  const chunks = body.match(new RegExp(`.{1,${size}}`, 'gs')) ?? [];
  const chunksWithSize = chunks.map(
    (chunk) => `${chunk.length.toString(16)};x="y"\r\n${chunk}\r\n`,
  );
  return `${requestLine}\r\n${AUTHORIZED}${headers}Transfer-Encoding: chunked\r\n\r\n${chunksWithSize.join('')}0\r\nX: y\r\n\r\n`;
}

const get = (path: string, headers = '', version = 'HTTP/1.1'): string =>
  `GET ${path} ${version}\r\nHost: x\r\n${headers}\r\n`;

/** @param statuses of the response; by default the message is a create request that gets 200 */
function message(bytes: ClientMessage['bytes'], ...statuses: number[]): ClientMessage {
  const creates = statuses.length === 0;
  return { bytes, statuses: creates ? [200] : statuses, creates, endsConnection: false };
}

/** Replaces the size of the last chunk by an invalid one. */
const breakLastChunk = (request: string, size = 'zz') =>
  request.replace('\r\n0\r\n', `\r\n${size}\r\n`);
const chunkedWithError = (requestLine: string, chunk = 'zz\r\n') =>
  `${requestLine} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n${chunk}`;
/** Returns a request for an unknown path whose body is a valid create request. */
const withRequestAsBody = (id: number, body = creation(id)) =>
  `PUT /nope HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n${body}`;

const EXPECT = 'Expect: 100-continue\r\n';
const UPGRADE = 'Connection: Upgrade\r\nUpgrade: h2c\r\n';
const CLOSE = 'Connection: x, Close\r\n';
const KEEP_ALIVE = 'Connection: Keep-Alive\r\n';
const HTTP_1_0 = 'POST /plants HTTP/1.0';
const LONG_NAME = 'x'.repeat(2 * BODY_LIMIT);

/** Requests after which the connection stays open. */
const requests: readonly ClientMessage[] = [
  message((id) => creation(id)),
  message((id) => chunked(plantBody(id))),
  message((id) => creation(id, EXPECT)),
  message((id) => chunked(plantBody(id), EXPECT)),
  message((id) => `\r\n\r\n${creation(id)}`),
  message((id) => creation(id, '', 'POST http://x/plants HTTP/1.1')),
  message((id) => creation(id).replace(TOKEN, 'x'), 401),
  message((id) => chunked(plantBody(id)).replace(TOKEN, 'x'), 401),
  message((id) => creation(id).replace('{', '['), 400),
  message(() => get('/health/live'), 200),
  message(() => chunked('abc', '', 1, 'GET /health/live HTTP/1.1'), 200),
  message(() => get('/health/live', KEEP_ALIVE, 'HTTP/1.0'), 200),
  // The response comes later than the request is read. With a token, it takes a hundred times as long.
  message(() => get('/metrics'), 401),
  message(withRequestAsBody, 404),
  message((id) => chunked(creation(id), '', 50, 'POST /nope HTTP/1.1'), 404),
  message((id) => creation(id, '', 'PATCH /plants HTTP/1.1'), 405),
];

/** Requests whose response closes the connection. */
const closingRequests: readonly ClientMessage[] = [
  message((id) => creation(id, EXPECT).replace(TOKEN, 'x'), 401),
  message((id) => creation(id, CLOSE)),
  message((id) => creation(id, '', HTTP_1_0)),
  message((id) => creation(id, 'Connection: keep-alive, close\r\n', HTTP_1_0)),
  message((id) => creation(id, UPGRADE)),
  message((id) => chunked(plantBody(id), UPGRADE)),
  message((id) => creation(id, EXPECT + UPGRADE)),
  message((id) => creation(id, EXPECT + CLOSE)),
  message(() => get('/health/live', UPGRADE), 200),
  message(() => get('/nope', KEEP_ALIVE + UPGRADE, 'HTTP/1.0'), 404),
  message(() => get('/health/live', EXPECT), 200),
  message(() => get('/metrics', EXPECT), 401),
  message((id) => creation(id, EXPECT, 'PUT /nope HTTP/1.1'), 404),
  message((id) => creation(id, EXPECT, 'PUT /plants HTTP/1.1'), 405),
];

/** Requests and other bytes that end the connection. */
const closingMessages: readonly ClientMessage[] = [
  ...closingRequests,
  message((id) => creation(id, '', 'POST /%zz HTTP/1.1'), 400),
  message((id) => creation(id, 'Expect: 200-ok\r\n'), 417),
  message((id) => creation(id).replace('Host: x', 'Host: [zz]'), 400),
  message((id) => creation(id, '', HTTP_1_0).replace('Host: x', 'Host: a b'), 400),
  message(() => load.createRequest(0, LONG_NAME).text, 400),
  message((id) => creation(id).replace(/Content-Length: \d+/, 'Content-Length: 99999'), 400),
  message(() => chunked(`{"id":1,"name":"${LONG_NAME}"}`, '', 400), 400),
  message(
    () => chunkedWithError('POST /plants', '0\r\n\r\n').replace('chunked', 'gzip, chunked'),
    501,
  ),
  message((id) => breakLastChunk(chunked(plantBody(id))), 400),
  message((id) => breakLastChunk(chunked(plantBody(id), CLOSE)), 400),
  message((id) => breakLastChunk(chunked(plantBody(id), EXPECT), '-1'), 400),
  // The response does not wait for the body. If the error arrives while an earlier request is still in
  // progress, the response is 400.
  message(() => chunkedWithError('PUT /url'), 404, 400),
  message(() => chunkedWithError('GET /health/live', '3\r\nabcd\r\n'), 200, 400),
  message(() => chunkedWithError('GET /metrics'), 401, 400),
  message((id) => creation(id, 'Content-Length: 1\r\n'), 400),
  message(() => 'garbage\r\n\r\n', 400, 501),
  message(() => get('/').replace('GET', 'BREW'), 400, 501),
  message(() => get('/', `X: ${'x'.repeat(20_000)}\r\n`), 431),
].map((each) => ({ ...each, endsConnection: true }));

/** A fraction from 0 to 1. Made of integers, because most random doubles are very close to 0. */
const fraction = fc.nat({ max: 998 }).map((thousandths) => thousandths / 999);

/**
 * The actions of a client on one connection. It sends some requests, often a message that ends the connection, and
 * often another message after that.
 */
const anyScript = fc.record({
  messages: fc
    .tuple(
      fc.array(fc.constantFrom(...requests), { maxLength: 2 }),
      fc.option(fc.constantFrom(...closingMessages), { nil: undefined }),
      fc.array(fc.constantFrom(...requests, ...closingMessages), { maxLength: 1 }),
    )
    .map(([before, closing, after]) => [...before, ...(closing ? [closing] : []), ...after]),
  /** The fraction of the last message that is sent. Undefined: all of it. */
  truncatedTo: fc.option(fraction, { nil: undefined, freq: 3 }),
  leaving: fc.nat({ max: 9 }).map((ten): Leaving => (['RST', 'FIN'] as const)[ten] ?? 'read'),
  /** Where a segment ends, as a fraction of all bytes, and the pause before it in turns of the event loop. */
  segments: fc.array(fc.record({ at: fraction, pause: fc.nat({ max: 3 }) }), { maxLength: 8 }),
});
type Script = typeof anyScript extends fc.Arbitrary<infer T> ? T : never;

/** The result of many scripts. */
export interface ScriptReport {
  /** Responses that the model does not allow. */
  readonly violations: string[];
  /** The ids of the plants that must be stored. */
  readonly mustBeStored: Set<number>;
  /** The ids of the plants that may be stored: the client disconnected before the response. */
  readonly mayBeStored: Set<number>;
}

/**
 * Runs random scripts against a server, each on a connection of its own, and many at the same time.
 *
 * @param url the address of a server with {@link BODY_LIMIT}
 * @param count the number of scripts
 */
export async function runScripts(url: URL, seed: number, count: number): Promise<ScriptReport> {
  const scripts = fc.sample(anyScript, { seed, numRuns: count });
  const report: ScriptReport = { violations: [], mustBeStored: new Set(), mayBeStored: new Set() };
  const remaining = scripts.entries();
  const runNext = async (): Promise<void> => {
    for (const [at, script] of remaining) {
      // Stops at the first violation: if every connection hangs, the other scripts would take hours.
      if (report.violations.length > 0) return;
      await runScript(url, script, 1 + at * 10, report);
    }
  };
  await Promise.all(Array.from({ length: 64 }, runNext));
  return report;
}

async function runScript(
  url: URL,
  script: Script,
  firstId: number,
  report: ScriptReport,
): Promise<void> {
  const { messages, truncatedTo, leaving, segments } = script;
  const complete = truncatedTo === undefined ? messages : messages.slice(0, -1);
  const texts = messages.map(({ bytes }, index) => {
    const text = bytes(firstId + index);
    return index < complete.length ? text : text.slice(0, (truncatedTo ?? 1) * text.length);
  });
  const end = complete.findIndex(({ endsConnection }) => endsConnection);
  const processed = end < 0 ? complete : complete.slice(0, end + 1);

  const count = end < 0 ? processed.length : Infinity;
  const statuses = await exchangeInSegments(url, texts.join(''), { segments, leaving, count });

  const storedIds = leaving === 'read' ? report.mustBeStored : report.mayBeStored;
  processed.forEach(({ creates }, index) => creates && storedIds.add(firstId + index));
  if (leaving !== 'read') return;
  const allowed = processed.map((each) => each.statuses);
  // A truncated message may get a response if its headers, or the invalid bytes, were sent.
  const truncated = end < 0 ? messages[complete.length] : undefined;
  if (truncated && statuses.length > processed.length) allowed.push([...truncated.statuses, 400]);
  const isAllowed =
    statuses.length === allowed.length &&
    statuses.every((status, index) => allowed[index]?.includes(status));
  if (isAllowed) return;
  const description = JSON.stringify({ texts, truncatedTo, segments, statuses });
  report.violations.push(`${description}: expected ${JSON.stringify(allowed)}`);
}

import fc from 'fast-check';
import { TOKEN } from './application';
import { converse, type Leaving } from './conversation';
import * as load from './load';

/** The largest body that the server of the model takes, in bytes. */
export const BODY_LIMIT = 1024;

/**
 * One piece of what a client sends on a connection, and what becomes of it: a request, or something
 * that the connection does not survive.
 */
interface Piece {
  readonly bytes: (id: number) => string;
  /** The statuses that may answer it; empty when nothing does. */
  readonly statuses: readonly number[];
  /** Whether it creates the plant of its id. */
  readonly creates: boolean;
  /** Whether nothing behind it is processed. */
  readonly ends: boolean;
}

const CREATE = 'POST /plants HTTP/1.1';
const AUTHORIZED = `Host: x\r\nAuthorization: Bearer ${TOKEN}\r\nContent-Type: application/json\r\n`;
const bodyOf = (id: number): string => `{"id":${id},"name":"Fern"}`;

/** A creation, with further fields and a start line of the caller's choice. */
const creation = (id: number, fields = '', line = CREATE): string =>
  load.creation(id).text.replace(`${CREATE}\r\n`, `${line}\r\n${fields}`);

/** A request with a body in chunks of a byte or more, in the given framing. */
function chunked(body: string, fields = '', size = 5, line = CREATE): string {
  const chunks = body.match(new RegExp(`.{1,${size}}`, 'gs')) ?? [];
  const framed = chunks.map((chunk) => `${chunk.length.toString(16)};x="y"\r\n${chunk}\r\n`);
  return `${line}\r\n${AUTHORIZED}${fields}Transfer-Encoding: chunked\r\n\r\n${framed.join('')}0\r\nX: y\r\n\r\n`;
}

const get = (path: string, fields = '', version = 'HTTP/1.1'): string =>
  `GET ${path} ${version}\r\nHost: x\r\n${fields}\r\n`;

/** @param statuses none for a creation, which is answered 200 */
function piece(bytes: Piece['bytes'], ...statuses: number[]): Piece {
  const creates = statuses.length === 0;
  return { bytes, statuses: creates ? [200] : statuses, creates, ends: false };
}

/** Breaks the end of a body in chunks. */
const broken = (request: string, size = 'zz') => request.replace('\r\n0\r\n', `\r\n${size}\r\n`);
const badChunk = (line: string, chunk = 'zz\r\n') =>
  `${line} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n${chunk}`;
/** A request for what there is not, with a good creation as its body. */
const creationInside = (id: number, body = creation(id)) =>
  `PUT /nope HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n${body}`;

const expects = 'Expect: 100-continue\r\n';
const upgrades = 'Connection: Upgrade\r\nUpgrade: h2c\r\n';
const closes = 'Connection: x, Close\r\n';
const keeps = 'Connection: Keep-Alive\r\n';
const OLD = 'POST /plants HTTP/1.0';
const LONG_NAME = 'x'.repeat(2 * BODY_LIMIT);

/** Requests after which the connection goes on. */
const requests: readonly Piece[] = [
  piece((id) => creation(id)),
  piece((id) => chunked(bodyOf(id))),
  piece((id) => creation(id, expects)),
  piece((id) => chunked(bodyOf(id), expects)),
  piece((id) => `\r\n\r\n${creation(id)}`),
  piece((id) => creation(id, '', 'POST http://x/plants HTTP/1.1')),
  piece((id) => creation(id).replace(TOKEN, 'x'), 401),
  piece((id) => chunked(bodyOf(id)).replace(TOKEN, 'x'), 401),
  piece((id) => creation(id).replace('{', '['), 400),
  piece(() => get('/health/live'), 200),
  piece(() => chunked('abc', '', 1, 'GET /health/live HTTP/1.1'), 200),
  piece(() => get('/health/live', keeps, 'HTTP/1.0'), 200),
  // Answered later than it is read. With a token it would take a hundred times as long.
  piece(() => get('/metrics'), 401),
  piece(creationInside, 404),
  piece((id) => chunked(creation(id), '', 50, 'POST /nope HTTP/1.1'), 404),
  piece((id) => creation(id, '', 'PATCH /plants HTTP/1.1'), 405),
];

/** Requests whose response closes the connection. */
const lastRequests: readonly Piece[] = [
  piece((id) => creation(id, expects).replace(TOKEN, 'x'), 401),
  piece((id) => creation(id, closes)),
  piece((id) => creation(id, '', OLD)),
  piece((id) => creation(id, 'Connection: keep-alive, close\r\n', OLD)),
  piece((id) => creation(id, upgrades)),
  piece((id) => chunked(bodyOf(id), upgrades)),
  piece((id) => creation(id, expects + upgrades)),
  piece((id) => creation(id, expects + closes)),
  piece(() => get('/health/live', upgrades), 200),
  piece(() => get('/nope', keeps + upgrades, 'HTTP/1.0'), 404),
  piece(() => get('/health/live', expects), 200),
  piece(() => get('/metrics', expects), 401),
  piece((id) => creation(id, expects, 'PUT /nope HTTP/1.1'), 404),
  piece((id) => creation(id, expects, 'PUT /plants HTTP/1.1'), 405),
];

/** What a connection does not survive. */
const endings: readonly Piece[] = [
  ...lastRequests,
  piece((id) => creation(id, '', 'POST /%zz HTTP/1.1'), 400),
  piece((id) => creation(id, 'Expect: 200-ok\r\n'), 417),
  piece((id) => creation(id).replace('Host: x', 'Host: [zz]'), 400),
  piece((id) => creation(id, '', OLD).replace('Host: x', 'Host: a b'), 400),
  piece(() => load.creation(0, LONG_NAME).text, 400),
  piece((id) => creation(id).replace(/Content-Length: \d+/, 'Content-Length: 99999'), 400),
  piece(() => chunked(`{"id":1,"name":"${LONG_NAME}"}`, '', 400), 400),
  piece(() => badChunk('POST /plants', '0\r\n\r\n').replace('chunked', 'gzip, chunked'), 501),
  piece((id) => broken(chunked(bodyOf(id))), 400),
  piece((id) => broken(chunked(bodyOf(id), closes)), 400),
  piece((id) => broken(chunked(bodyOf(id), expects), '-1'), 400),
  // Answered without the body, unless the request waits for its turn when the fault comes.
  piece(() => badChunk('PUT /url'), 404, 400),
  piece(() => badChunk('GET /health/live', '3\r\nabcd\r\n'), 200, 400),
  piece(() => badChunk('GET /metrics'), 401, 400),
  piece((id) => creation(id, 'Content-Length: 1\r\n'), 400),
  piece(() => 'garbage\r\n\r\n', 400, 501),
  piece(() => get('/').replace('GET', 'BREW'), 400, 501),
  piece(() => get('/', `X: ${'x'.repeat(20_000)}\r\n`), 431),
].map((each) => ({ ...each, ends: true }));

/** A share of some bytes. Integers, because random doubles are nearly all next to 0. */
const share = fc.nat({ max: 998 }).map((thousandths) => thousandths / 999);

/** What a client does on one connection: some requests, often an ending, more behind it. */
const anyScript = fc.record({
  pieces: fc
    .tuple(
      fc.array(fc.constantFrom(...requests), { maxLength: 2 }),
      fc.option(fc.constantFrom(...endings), { nil: undefined }),
      fc.array(fc.constantFrom(...requests, ...endings), { maxLength: 1 }),
    )
    .map(([before, ending, behind]) => [...before, ...(ending ? [ending] : []), ...behind]),
  /** Of the last piece only this share is sent, when the client leaves in the middle of it. */
  cut: fc.option(share, { nil: undefined, freq: 3 }),
  leaving: fc.nat({ max: 9 }).map((ten): Leaving => (['RST', 'FIN'] as const)[ten] ?? 'read'),
  /** Where the bytes are cut, as shares of them, and the pauses before each segment, in ticks. */
  segments: fc.array(fc.record({ at: share, pause: fc.nat({ max: 3 }) }), { maxLength: 8 }),
});
type Script = typeof anyScript extends fc.Arbitrary<infer T> ? T : never;

/** What came of many scripts. */
export interface Report {
  /** What the model does not allow. */
  readonly faults: string[];
  /** Ids of plants that must be stored, and of those that may be, because the client has left. */
  readonly stored: Set<number>;
  readonly maybeStored: Set<number>;
}

/**
 * Plays random scripts against a server whose `BODY_LIMIT` is the model's, many at a time, each on a
 * connection of its own.
 *
 * @param count how many connections
 */
export async function playScripts(url: URL, seed: number, count: number): Promise<Report> {
  const scripts = fc.sample(anyScript, { seed, numRuns: count });
  const report: Report = { faults: [], stored: new Set(), maybeStored: new Set() };
  const rest = scripts.entries();
  const player = async (): Promise<void> => {
    for (const [at, script] of rest) {
      // Enough to see what is wrong: when all hang, the others would take hours.
      if (report.faults.length > 0) return;
      await play(url, script, 1 + at * 10, report);
    }
  };
  await Promise.all(Array.from({ length: 64 }, player));
  return report;
}

async function play(url: URL, script: Script, firstId: number, report: Report): Promise<void> {
  const { pieces, cut, leaving, segments } = script;
  const whole = cut === undefined ? pieces : pieces.slice(0, -1);
  const texts = pieces.map(({ bytes }, index) => {
    const text = bytes(firstId + index);
    return index < whole.length ? text : text.slice(0, (cut ?? 1) * text.length);
  });
  const end = whole.findIndex(({ ends }) => ends);
  const answered = end < 0 ? whole : whole.slice(0, end + 1);

  const count = end < 0 ? answered.length : Infinity;
  const statuses = await converse(url, texts.join(''), { segments, leaving, count });

  const stored = leaving === 'read' ? report.stored : report.maybeStored;
  answered.forEach(({ creates }, index) => creates && stored.add(firstId + index));
  if (leaving !== 'read') return;
  const allowed = answered.map((each) => each.statuses);
  // What is cut may be answered before it is complete, as long as its head is there, or the fault is.
  const lastCut = end < 0 ? pieces[whole.length] : undefined;
  if (lastCut && statuses.length > answered.length) allowed.push([...lastCut.statuses, 400]);
  const fits =
    statuses.length === allowed.length &&
    statuses.every((status, index) => allowed[index]?.includes(status));
  if (fits) return;
  const described = JSON.stringify({ texts, cut, segments, statuses });
  report.faults.push(`${described}: expected ${JSON.stringify(allowed)}`);
}

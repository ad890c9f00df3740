import { connect } from 'node:net';
import fc from 'fast-check';
import { TOKEN } from './application';

/** Milliseconds after which a connection that should have ended counts as hanging. */
const HANG = 240_000;

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

/**
 * How a client leaves: it reads its answers and then ends its side, or it ends its side or resets the
 * connection as soon as it has sent all.
 */
type Leaving = 'read' | 'FIN' | 'RST';

/** What a client does on one connection. */
interface Script {
  readonly pieces: readonly Piece[];
  /** Of the last piece only this share is sent, when the client leaves in the middle of it. */
  readonly cut: number | undefined;
  readonly leaving: Leaving;
  /** Where the bytes are cut into segments, as shares of them, and the pauses before each, in ticks. */
  readonly segments: readonly { readonly at: number; readonly pause: number }[];
}

const AUTHORIZED = `Host: x\r\nAuthorization: Bearer ${TOKEN}\r\nContent-Type: application/json\r\n`;
const bodyOf = (id: number): string => `{"id":${id},"name":"Fern"}`;

/** A creation, with fields, a start line and a body of the caller's choice. */
function creation(
  id: number,
  fields = '',
  version = 'HTTP/1.1',
  method = 'POST /plants',
  body = bodyOf(id),
): string {
  return `${method} ${version}\r\n${AUTHORIZED}${fields}Content-Length: ${body.length}\r\n\r\n${body}`;
}

/** A request with a body in chunks of a byte or more, in the given framing. */
function chunked(body: string, fields = '', size = 5, line = 'POST /plants HTTP/1.1'): string {
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
const tooLong = `{"id":1,"name":"${'x'.repeat(2 * BODY_LIMIT)}"}`;

/** Requests after which the connection goes on. */
const requests: readonly Piece[] = [
  piece((id) => creation(id)),
  piece((id) => chunked(bodyOf(id))),
  piece((id) => creation(id, expects)),
  piece((id) => chunked(bodyOf(id), expects)),
  piece((id) => `\r\n\r\n${creation(id)}`),
  piece((id) => creation(id, '', undefined, 'POST http://x/plants')),
  piece((id) => creation(id).replace(TOKEN, 'x'), 401),
  piece((id) => creation(id).replace('{', '['), 400),
  piece(() => get('/health/live'), 200),
  piece(() => chunked('abc', '', 1, 'GET /health/live HTTP/1.1'), 200),
  piece(() => get('/health/live', keeps, 'HTTP/1.0'), 200),
  // Answered later than it is read. With a token it would take a hundred times as long.
  piece(() => get('/metrics'), 401),
  piece(creationInside, 404),
  piece((id) => chunked(creation(id), '', 50, 'POST /nope HTTP/1.1'), 404),
  piece((id) => creation(id, '', undefined, 'PATCH /plants'), 405),
];

/** What a connection does not survive. */
const endings: readonly Piece[] = [
  piece((id) => creation(id, expects).replace(TOKEN, 'x'), 401),
  piece((id) => creation(id, closes)),
  piece((id) => creation(id, '', 'HTTP/1.0')),
  piece((id) => creation(id, 'Connection: keep-alive, close\r\n', 'HTTP/1.0')),
  piece((id) => creation(id, upgrades)),
  piece((id) => chunked(bodyOf(id), upgrades)),
  piece(() => get('/health/live', upgrades), 200),
  piece(() => get('/nope', keeps + upgrades, 'HTTP/1.0'), 404),
  piece(() => get('/health/live', expects), 200),
  piece(() => get('/metrics', expects), 401),
  piece((id) => creation(id, expects, undefined, 'PUT /nope'), 404),
  piece((id) => creation(id, expects, undefined, 'PUT /plants'), 405),
  piece((id) => creation(id, '', undefined, 'POST /%zz'), 400),
  piece((id) => creation(id, 'Expect: 200-ok\r\n'), 417),
  piece((id) => creation(id).replace('Host: x', 'Host: [zz]'), 400),
  piece((id) => creation(id, '', 'HTTP/1.0').replace('Host: x', 'Host: a b'), 400),
  piece(() => creation(0, '', undefined, undefined, tooLong), 400),
  piece(() => `POST /plants HTTP/1.1\r\nHost: x\r\nContent-Length: 99999\r\n\r\n`, 400),
  piece(() => chunked(tooLong, '', 400), 400),
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

/** Any script: some requests, often an ending, more behind it, in any segments. */
const anyScript: fc.Arbitrary<Script> = fc.record({
  pieces: fc
    .tuple(
      fc.array(fc.constantFrom(...requests), { maxLength: 2 }),
      fc.option(fc.constantFrom(...endings), { nil: undefined }),
      fc.array(fc.constantFrom(...requests, ...endings), { maxLength: 1 }),
    )
    .map(([before, ending, behind]) => [...before, ...(ending ? [ending] : []), ...behind]),
  cut: fc.option(share, { nil: undefined, freq: 3 }),
  leaving: fc.nat({ max: 9 }).map((ten) => (ten === 0 ? 'RST' : ten === 1 ? 'FIN' : 'read')),
  segments: fc.array(fc.record({ at: share, pause: fc.nat({ max: 3 }) }), { maxLength: 8 }),
});

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
    for (const [at, script] of rest) await play(url, script, 1 + at * 10, report);
  };
  await Promise.all(Array.from({ length: 64 }, player));
  return report;
}

async function play(url: URL, script: Script, firstId: number, report: Report): Promise<void> {
  const { pieces, cut, leaving } = script;
  const texts = pieces.map(({ bytes }, index) => bytes(firstId + index));
  if (cut !== undefined) {
    const last = texts.pop();
    if (last !== undefined) texts.push(last.slice(0, Math.floor(cut * last.length)));
  }
  const { expected, ends, lastCut } = expectedOf(script);

  const received = await send(url, texts.join(''), script, ends ? Infinity : expected.length);

  const created = expected.flatMap(({ creates }, index) => (creates ? [firstId + index] : []));
  const stored = leaving === 'read' ? report.stored : report.maybeStored;
  for (const id of created) stored.add(id);
  if (leaving !== 'read') return;
  const statuses = statusesOf(received);
  const allowed = expected.map((each) => each.statuses);
  // It may be answered before it is complete, as long as its head is there, or the fault is.
  if (lastCut && statuses.length > expected.length) allowed.push([...lastCut.statuses, 400]);
  const fits =
    statuses.length === allowed.length &&
    allowed.every((each, index) => each.includes(statuses[index] ?? 0));
  if (fits) return;
  const described = JSON.stringify({ texts, cut, segments: script.segments, statuses });
  report.faults.push(`${described}: expected ${JSON.stringify(allowed)}`);
}

/** The pieces to be answered, whether the service ends the connection then, and the one sent in part. */
function expectedOf({ pieces, cut }: Script): {
  expected: readonly Piece[];
  ends: boolean;
  lastCut?: Piece | undefined;
} {
  const whole = cut === undefined ? pieces : pieces.slice(0, -1);
  const end = whole.findIndex(({ ends }) => ends);
  if (end >= 0) return { expected: whole.slice(0, end + 1), ends: true };
  return { expected: whole, ends: false, lastCut: pieces[whole.length] };
}

/** The final statuses in what came over the wire. */
function statusesOf(received: string): number[] {
  const statuses: number[] = [];
  let rest = received;
  while (rest !== '') {
    const end = rest.indexOf('\r\n\r\n') + 4;
    const head = rest.slice(0, end);
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(head)?.[1]);
    if (status !== 100) statuses.push(status);
    if (Number.isNaN(status) || end < 4) break;
    rest = rest.slice(end + Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? 0));
  }
  return statuses;
}

/**
 * Sends a text in the segments of a script, and gives back all that came.
 *
 * @param count how many answers the client reads before it ends its side; unless the service ends first
 */
async function send(
  url: URL,
  text: string,
  { segments, leaving }: Script,
  count: number,
): Promise<string> {
  const socket = connect({ port: Number(url.port), host: url.hostname, allowHalfOpen: true });
  socket.setNoDelay();
  let received = '';
  const isRead = Promise.withResolvers<undefined>();
  const look = (): void => {
    if (statusesOf(received).length >= count) isRead.resolve(undefined);
  };
  socket.on('data', (chunk) => {
    received += chunk.toString('latin1');
    look();
  });
  socket.on('end', isRead.resolve);
  // A client that has left is not told.
  socket.on('error', () => undefined);
  const closed = new Promise((resolve) => socket.once('close', resolve));
  const hanging = setTimeout(() => {
    received += '(the connection does not end)';
    socket.destroy();
  }, HANG);
  const cuts = segments
    .map(({ at, pause }) => ({ at: Math.floor(at * text.length), pause }))
    .sort((a, b) => a.at - b.at);
  let sent = 0;
  for (const { at, pause } of [...cuts, { at: text.length, pause: 1 }]) {
    for (let tick = 0; tick < pause; tick++) await new Promise(setImmediate);
    socket.write(text.slice(sent, at), 'latin1');
    sent = at;
  }
  look();
  if (leaving === 'read') await Promise.race([isRead.promise, closed]);
  if (leaving === 'RST') setImmediate(() => socket.resetAndDestroy());
  else socket.end();
  await closed;
  clearTimeout(hanging);
  return received;
}

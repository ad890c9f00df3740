import { connect } from 'node:net';
import fc from 'fast-check';
import { TOKEN } from './application';

/** The largest body that the server of the model takes, in bytes. */
export const BODY_LIMIT = 1024;

/**
 * One piece of what a client sends on a connection, and what becomes of it: a request, or something
 * that the connection does not survive.
 */
interface Piece {
  readonly name: string;
  readonly bytes: (id: number) => string;
  /** The statuses that may answer it; empty when nothing does. */
  readonly statuses: readonly number[];
  /** Whether it creates the plant of its id. */
  readonly creates: boolean;
  /** Whether nothing behind it is processed. */
  readonly ends: boolean;
}

/** How a client leaves when it has sent all: it ends its side, or resets the connection. */
type Leaving = 'FIN' | 'RST';

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

/** A creation, with a start line and further fields of the caller's choice. */
function creation(id: number, fields = '', version = 'HTTP/1.1', method = 'POST /plants'): string {
  const body = bodyOf(id);
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

type Bytes = (id: number) => string;

const answered = (name: string, statuses: number | readonly number[], bytes: Bytes): Piece => ({
  name,
  bytes,
  statuses: [statuses].flat(),
  creates: false,
  ends: false,
});
const created = (name: string, bytes: Bytes): Piece => ({
  ...answered(name, 200, bytes),
  creates: true,
});
/** A piece that the connection does not survive. */
const last = (...piece: Parameters<typeof answered>): Piece => ({
  ...answered(...piece),
  ends: true,
});
const createdLast = (name: string, bytes: Bytes): Piece => ({
  ...created(name, bytes),
  ends: true,
});

const expects = 'Expect: 100-continue\r\n';
const upgrades = 'Connection: Upgrade\r\nUpgrade: h2c\r\n';
const closes = 'Connection: x, Close\r\n';
const keepAlive = 'Connection: Keep-Alive\r\n';
const inChunks = 'Host: x\r\nTransfer-Encoding: chunked\r\n\r\n';
const tooLong = `{"id":1,"name":"${'x'.repeat(2 * BODY_LIMIT)}"}`;
/** A creation without a good token. */
const strange = (id: number, fields = ''): string => creation(id, fields).replace(TOKEN, 'x');
/** A creation sent elsewhere. */
const sentTo = (line: string, id: number, fields = ''): string =>
  creation(id, fields, undefined, line);
const broken = (id: number, fields = '', size = 'zz'): string =>
  chunked(bodyOf(id), fields).replace('\r\n0\r\n', `\r\n${size}\r\n`);

/** Requests after which the connection goes on. */
const requests: readonly Piece[] = [
  created('creation', (id) => creation(id)),
  created('creation in chunks', (id) => chunked(bodyOf(id))),
  created('creation that expects', (id) => creation(id, expects)),
  created('creation in chunks that expects', (id) => chunked(bodyOf(id), expects)),
  created('creation behind empty lines', (id) => `\r\n\r\n${creation(id)}`),
  created('creation in absolute form', (id) => sentTo('POST http://x/plants', id)),
  answered('creation without token', 401, (id) => strange(id)),
  last('creation without token that expects', 401, (id) => strange(id, expects)),
  answered('no JSON', 400, (id) => creation(id).replace('{', '[')),
  answered('liveness', 200, () => get('/health/live')),
  answered('liveness with a body', 200, () => chunked('abc', '', 1, 'GET /health/live HTTP/1.1')),
  answered('liveness, kept alive in HTTP/1.0', 200, () =>
    get('/health/live', keepAlive, 'HTTP/1.0'),
  ),
  // Answered later than it is read. With a token it would take a hundred times as long.
  answered('metrics without token', 401, () => get('/metrics')),
  answered('metrics without token that expect', 401, () => get('/metrics', expects)),
  answered('no such path, with a good creation as its body', 404, (id) => {
    const body = creation(id);
    return `PUT /nope HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  }),
  answered('no such path, with a body in chunks', 404, (id) =>
    chunked(creation(id), '', 50, 'POST /nope HTTP/1.1'),
  ),
  answered('no such method', 405, (id) => sentTo('PATCH /plants', id)),
];

/** What a connection does not survive. */
const endings: readonly Piece[] = [
  createdLast('creation that closes', (id) => creation(id, closes)),
  createdLast('creation in HTTP/1.0', (id) => creation(id, '', 'HTTP/1.0')),
  createdLast('creation in HTTP/1.0, kept alive and closed', (id) =>
    creation(id, 'Connection: keep-alive, close\r\n', 'HTTP/1.0'),
  ),
  createdLast('creation that upgrades', (id) => creation(id, upgrades)),
  createdLast('creation in chunks that upgrades', (id) => chunked(bodyOf(id), upgrades)),
  createdLast('creation that closes in a trailer', (id) =>
    chunked(bodyOf(id)).replace('X: y', 'Connection: close'),
  ),
  last('liveness that upgrades', 200, () => get('/health/live', upgrades)),
  last('no such path that upgrades, in HTTP/1.0', 404, () =>
    get('/nope', keepAlive + upgrades, 'HTTP/1.0'),
  ),
  last('liveness that expects', 200, () => get('/health/live', expects)),
  last('no such path that expects', 404, (id) => sentTo('PUT /nope', id, expects)),
  last('no such method that expects', 405, (id) => sentTo('PUT /plants', id, expects)),
  last('malformed target', 400, (id) => sentTo('POST /%zz', id)),
  last('unknown expectation', 417, (id) => creation(id, 'Expect: 200-ok\r\n')),
  last('no host', 400, (id) => creation(id).replace('Host: x', 'Host: [zz]')),
  last('no host in HTTP/1.0', 400, (id) =>
    creation(id, '', 'HTTP/1.0').replace('Host: x', 'Host: a b'),
  ),
  last(
    'too long',
    400,
    () =>
      `POST /plants HTTP/1.1\r\n${AUTHORIZED}Content-Length: ${tooLong.length}\r\n\r\n${tooLong}`,
  ),
  last(
    'too long without token',
    400,
    () => 'POST /plants HTTP/1.1\r\nHost: x\r\nContent-Length: 99999\r\n\r\n',
  ),
  last('too long in chunks', 400, () => chunked(tooLong, '', 400)),
  last(
    'unknown coding',
    501,
    () => 'POST /plants HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n',
  ),
  last('broken chunk', 400, (id) => broken(id)),
  last('broken chunk of a creation that closes', 400, (id) => broken(id, closes)),
  last('broken chunk that expects', 400, (id) => broken(id, expects, '-1')),
  last('broken chunk where nothing reads it', 404, () => `PUT /url HTTP/1.1\r\n${inChunks}zz\r\n`),
  last(
    'broken chunk where nothing waits for it',
    200,
    () => `GET /health/live HTTP/1.1\r\n${inChunks}3\r\nabcd\r\n`,
  ),
  last(
    'broken chunk behind metrics',
    [401, 400],
    () => `GET /metrics HTTP/1.1\r\n${inChunks}zz\r\n`,
  ),
  last('two lengths', 400, (id) => creation(id, 'Content-Length: 1\r\n')),
  last('garbage', [400, 501], () => 'garbage\r\n\r\n'),
  last('unknown method', [400, 501], () => get('/').replace('GET', 'BREW')),
  last('CONNECT', 501, () => 'CONNECT x:443 HTTP/1.1\r\nHost: x:443\r\n\r\n'),
  last('large head', 431, () => get('/', `X: ${'x'.repeat(20_000)}\r\n`)),
];

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
  leaving: fc.oneof(
    { weight: 9, arbitrary: fc.constant('FIN' as const) },
    { weight: 1, arbitrary: fc.constant('RST' as const) },
  ),
  segments: fc.array(fc.record({ at: share, pause: fc.nat({ max: 3 }) }), { maxLength: 8 }),
});

/** What came of a script. */
export interface Outcome {
  /** Ids of plants that must be stored, and of those that may be, because the client has left. */
  readonly stored: readonly number[];
  readonly maybeStored: readonly number[];
  /** What the model does not allow; undefined when all was as it should be. */
  readonly fault: string | undefined;
}

/** What came of many scripts. */
export interface Report {
  readonly faults: readonly string[];
  readonly stored: ReadonlySet<number>;
  readonly maybeStored: ReadonlySet<number>;
}

/**
 * Plays random scripts against a server whose `BODY_LIMIT` is the model's, many at a time, each on a
 * connection of its own.
 *
 * @param count how many connections
 */
export async function playScripts(url: URL, seed: number, count: number): Promise<Report> {
  const scripts = fc.sample(anyScript, { seed, numRuns: count });
  const report = {
    faults: [] as string[],
    stored: new Set<number>(),
    maybeStored: new Set<number>(),
  };
  let next = 0;
  const player = async (): Promise<void> => {
    for (let at = next++; at < count; at = next++) {
      const { stored, maybeStored, fault } = await play(url, scripts[at], 1 + at * 10);
      for (const id of stored) report.stored.add(id);
      for (const id of maybeStored) report.maybeStored.add(id);
      if (fault !== undefined) report.faults.push(`connection ${at}: ${fault}`);
    }
  };
  await Promise.all(Array.from({ length: 64 }, player));
  return report;
}

async function play(url: URL, script: Script | undefined, firstId: number): Promise<Outcome> {
  if (script === undefined) throw new Error('there is no such script');
  const { pieces, cut, leaving } = script;
  const texts = pieces.map(({ bytes }, index) => bytes(firstId + index));
  if (cut !== undefined) {
    const last = texts.pop();
    if (last !== undefined) texts.push(last.slice(0, Math.floor(cut * last.length)));
  }
  const text = texts.join('');

  const received = await send(url, text, script);

  const expected = expectedOf(script, texts);
  const ids = pieces.map((_piece, index) => firstId + index);
  const created = ids.filter((_id, index) => expected[index]?.creates);
  const statuses = statusesOf(received);
  if (leaving === 'RST') return { stored: [], maybeStored: created, fault: undefined };
  const answered = expected.filter((each) => each.statuses.length > 0);
  const fits =
    statuses.length === answered.length &&
    answered.every((each, index) => each.statuses.includes(statuses[index] ?? 0));
  const describe = (): string =>
    `${pieces.map(({ name }) => name).join(' / ')}; cut ${cut}; segments ${JSON.stringify(script.segments)}: ` +
    `answered ${statuses.join(' ')}, expected ${answered.map((each) => each.statuses.join('|')).join(' ')}`;
  return { stored: created, maybeStored: [], fault: fits ? undefined : describe() };
}

/** What is to become of each piece, in order; pieces that are not processed are missing. */
function expectedOf({ pieces, cut }: Script, texts: readonly string[]): Piece[] {
  const end = pieces.findIndex(({ ends }) => ends);
  const last = pieces.length - 1;
  const processed = pieces.slice(0, end < 0 ? undefined : end + 1);
  const lastPiece = pieces[last];
  if (cut === undefined || processed.length <= last || lastPiece === undefined) return processed;
  return [...processed.slice(0, last), expectedOfCut(lastPiece, texts[last] ?? '')];
}

/** What is to become of a request that ends in the middle. */
function expectedOfCut(whole: Piece, text: string): Piece {
  const cut = { ...whole, creates: false, ends: true };
  // Empty lines before a request are not part of it.
  if (/^(?:\r\n)*\r?$/.test(text)) return { ...cut, statuses: [] };
  // Answered before its body, as long as its head is there, or the fault is.
  return { ...cut, statuses: [...whole.statuses, 400] };
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

/** Sends a text in the segments of a script, and gives back all that came. */
async function send(url: URL, text: string, { segments, leaving }: Script): Promise<string> {
  const socket = connect({ port: Number(url.port), host: url.hostname, allowHalfOpen: true });
  socket.setNoDelay();
  let received = '';
  socket.on('data', (chunk) => (received += chunk.toString('latin1')));
  // A client that has left is not told.
  socket.on('error', () => undefined);
  const closed = new Promise((resolve) => socket.once('close', resolve));
  const cuts = segments
    .map(({ at, pause }) => ({ at: Math.floor(at * text.length), pause }))
    .sort((a, b) => a.at - b.at);
  let sent = 0;
  for (const { at, pause } of [...cuts, { at: text.length, pause: 1 }]) {
    for (let tick = 0; tick < pause; tick++) await new Promise(setImmediate);
    socket.write(text.slice(sent, at), 'latin1');
    sent = at;
  }
  if (leaving === 'FIN') socket.end();
  else setImmediate(() => socket.resetAndDestroy());
  await closed;
  return received;
}

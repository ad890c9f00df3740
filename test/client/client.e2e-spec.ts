/** Runs the client against the service, and against servers that fail as a test says. */
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer as createTlsServer } from 'node:https';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { inspect } from 'node:util';
import {
  type CreateOptions,
  type NewPlant,
  PlantStoreClient,
  type PlantStoreClientOptions,
  CreationError,
} from '../../src/client/index.mjs';
import { CONTENT_PROPERTIES, type PlantContent } from '../../src/plants/plant/plant';
import { TestApplication, TOKEN } from '../support/application';
import { errorBodies as bodies, errorNumbers } from '../support/error-bodies';
import { useFolder } from '../support/folder';
import { findFreePort } from '../support/free-port';
import { listen } from '../support/listen';
import {
  type Fault,
  startUnreliableProxy,
  type UnreliableProxy,
} from '../support/unreliable-proxy';
import { until } from '../support/until';

type Token = PlantStoreClientOptions['token'];

const CONTENT = { name: 'Fern', tag: 'shade' };
const FERN = { id: 9_007_199_254_740_993n, ...CONTENT };
const STORED = { ...CONTENT, isReplay: false };
const REPLAYED = { ...STORED, isReplay: true };

/** Creates an error response of the service. */
const createRejection = (body: { error: number }, retryAfter?: string): Fault => ({
  status: Math.floor(body.error / 100),
  headers: retryAfter === undefined ? {} : { 'Retry-After': retryAfter },
  body: JSON.stringify(body),
});
/** Creates a response of a web server that is not a plant store. */
const createPage = (status: number, body = '<h1>Sorry</h1>'): Fault => ({ status, body });
const taken = createRejection(bodies.idTaken);
const TLS = join(__dirname, '../support/tls');
const ATTEMPT_TIMEOUT_MS = 25_000;
const NOT_STORED = { error: errorNumbers.unavailable, outcome: 'not stored' };

describe('PlantStoreClient', () => {
  const tokens = join(useFolder(), 'tokens.txt');
  beforeAll(() => {
    writeFileSync(tokens, 'old ada\nnew ada\n');
  });
  const application = TestApplication.use({ AUTH_TOKENS_FILE: tokens, BODY_LIMIT: '1MiB' });
  let proxy: UnreliableProxy;
  let timers: jest.SpiedFunction<typeof setTimeout>;
  beforeEach(() => {
    application.store.removePlants();
    timers = jest.spyOn(globalThis, 'setTimeout');
  });
  afterEach(async () => {
    jest.restoreAllMocks();
    await proxy.stop();
  });

  /** Creates a client. The proxy in front of the service causes these faults, one for each request. */
  async function connect(faults: Fault[] = [], token: Token = TOKEN): Promise<PlantStoreClient> {
    proxy = await startUnreliableProxy(application.url.origin, faults);
    return new PlantStoreClient({ url: proxy.origin, token });
  }
  const seen = () => proxy.seen.map(({ what }) => what);
  const listHeader = (header: string) => proxy.seen.map(({ headers }) => headers[header]);

  /** Waits until the client sets a timer with this delay. Returns the callback of the last such timer. */
  async function findTimer(delayMs: number): Promise<() => void> {
    const find = () => timers.mock.calls.findLast(([, delay]) => delay === delayMs);
    await until(() => find() !== undefined);
    return find()?.[0] as () => void;
  }

  /** Returns the error with which the creation of {@link FERN} fails. */
  async function createAndFail(
    client: PlantStoreClient,
    options?: CreateOptions,
  ): Promise<unknown> {
    return client.create(FERN, options).catch((error: unknown) => error);
  }

  // prettier-ignore
  it.each([
    -(2n ** 63n), 2n ** 63n - 1n, FERN.id, 0n, 10n,
    Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER, -0,
  ])('stores the id %s and every property exactly', async (id) => {
    // The client has a list of its own, because it imports nothing of the service.
    const entries = CONTENT_PROPERTIES.map((name, at) => [name, at ? '' : ' "Fern\\ \n\u2028🌿']);
    const plant = Object.fromEntries(entries) as PlantContent;

    const response = await (await connect()).create({ id, ...plant });

    expect(response).toEqual({ ...plant, isReplay: false });
    expect(application.store.plants()).toEqual([{ id: BigInt(id), ...plant }]);
  });

  const failTo = (name: string, object = {}): object =>
    Object.defineProperty(object, name, { get: () => BigInt('throw an error') });
  const aKey = 'idempotencyKey must be 1 to 255 visible ASCII characters, bare or quoted';

  it.each<[string, object]>([
    ['The id must be a bigint or a safe integer, not 9007199254740992.', { id: 2 ** 53 }],
    ['The id must be a bigint or a safe integer, not 1.5.', { id: 1.5 }],
    ['The id must be a bigint or a safe integer, not "7".', { id: '7' }],
    ['The name must be a string, not undefined.', { name: undefined }],
    ['The tag must be a string, not null.', { tag: null }],
    ['The timeout must be a number of milliseconds above 0, not "5s".', { timeout: '5s' }],
    ['The timeout must be a number of milliseconds above 0, not 0.', { timeout: 0 }],
    ['The timeout must be a number of milliseconds above 0, not NaN.', { timeout: NaN }],
    [`The ${aKey}, not 7.`, { idempotencyKey: 7 }],
    [`The ${aKey}, not "a,b".`, { idempotencyKey: 'a,b' }],
    [
      'The signal must be an AbortSignal, not [object AbortController].',
      { signal: new AbortController() },
    ],
    ['The request cannot be created: ', failTo('id')],
    ['The request cannot be created: ', { signal: failTo('aborted', AbortSignal.abort()) }],
    ['The request cannot be created: ', { signal: { [Symbol.toStringTag]: 'AbortSignal' } }],
  ])('rejects with "%s", and sends nothing', async (message, wrong) => {
    const plant = Object.defineProperties({ ...FERN }, Object.getOwnPropertyDescriptors(wrong));
    const creation = (await connect()).create(plant, wrong);

    await expect(creation).rejects.toMatchObject({
      name: 'CreationError',
      message: expect.stringContaining(message) as string,
      outcome: 'not stored',
    });
    expect(seen()).toEqual([]);
  });

  it.each([
    [undefined, {}],
    [FERN, null],
    [FERN, 'key'],
  ])('rejects the arguments %j, %j with a CreationError', async (plant, options: unknown) => {
    const creation = (await connect()).create(plant as NewPlant, options as CreateOptions);

    await expect(creation).rejects.toBeInstanceOf(CreationError);
  });

  it.each([
    ['url', ['', '/api', 'plants.example.org', 'ftp://plants.example.org', undefined]],
    ['url', ['http://h/?a=b', 'http://h/#a', 'http://h?', 'http://ada:secret@h/']],
    ['token', [undefined, '', ' ', 'to ken', 'to\nken', 7]],
  ])('throws for invalid options, and names the %s', (name, values) => {
    const sentence = new RegExp(`^${name} must be (?!.*secret)`);
    for (const value of values) {
      const options = { url: 'http://h', token: TOKEN, [name]: value };
      expect(() => new PlantStoreClient(options)).toThrow(sentence);
    }
  });

  it.each([
    [301, 'http://other/plants', ''],
    [302, 'http://other/plants', ''],
    [303, 'http://other/plants', ''],
    [307, 'http://other/plants', ''],
    [308, 'http://other/plants', ''],
    [404, 'a page', '\n<!DOCTYPE html><title>Not found</title>'],
  ])('reports the URL, and does not retry, on %d with %s', async (status, received, body) => {
    const headers: Record<string, string> = body ? {} : { Location: received };
    const failure = await createAndFail(await connect([{ status, headers, body }]));

    const message = `Response ${status} from ${proxy.origin}/plants is not a plant store response. Check the URL. Received: ${received}`;
    expect(failure).toMatchObject({ message, error: undefined, status, outcome: 'unknown' });
    expect(seen()).toEqual([status]);
  });

  it('reads a response that is as long as the plant', async () => {
    const plant = { id: 1, name: '\u0001🌿'.repeat(100_000) };

    expect(await (await connect()).create(plant)).toEqual({ name: plant.name, isReplay: false });
  });

  it.each([
    [200, '{"name":"Fern","tag":"shade"}'],
    [403, '<h1>Sorry</h1>'],
  ])('stops reading a response with %d that does not end', async (status, body) => {
    const failure = await createAndFail(await connect([{ status, body, endless: 'fast' }]));

    expect(failure).toMatchObject({ status, error: undefined, outcome: 'unknown' });
    expect(seen()).toEqual([status]);
    await until(() => proxy.seen[0]?.isOpen === false);
  });

  it('retries on a new connection when a response arrives slowly and does not end', async () => {
    const body = '{"name":"Fern","tag":"shade"}';
    const client = await connect([{ status: 200, body, endless: 'slow' }]);
    const creation = client.create(FERN);
    await until(() => seen().length === 1);
    const endAttempt = await findTimer(ATTEMPT_TIMEOUT_MS);
    endAttempt();

    expect(await creation).toEqual(STORED);
    expect(seen()).toEqual([200, 200]);
    await until(() => proxy.seen[0]?.isOpen === false);
  });

  it('leaves the rules of the service to the service', async () => {
    const creation = (await connect()).create({ id: 2n ** 63n, name: '\ud800' });

    await expect(creation).rejects.toMatchObject({
      error: errorNumbers.idMissing,
      outcome: 'not stored',
    });
  });

  it('sends requests below the path of its URL', async () => {
    await connect();
    for (const url of [`${proxy.origin}/store`, `${proxy.origin}/store/`]) {
      const client = new PlantStoreClient({ url, token: TOKEN });
      expect(await createAndFail(client)).toMatchObject({ ...bodies.notFound, status: 404 });
    }
  });

  it.each(['{"error":40399,"message":"TEXT"}', 'Sorry: TEXT'])(
    'does not reveal the token when the client or its error is logged (response: %s)',
    async (body) => {
      const faulty = createPage(403, body.replace('TEXT', `Authorization: Bearer ${TOKEN}`));
      const client = await connect([faulty]);
      const failure = await createAndFail(client);

      expect(String(failure)).toContain('Authorization: Bearer TOKEN');
      for (const each of [client, failure]) {
        expect(inspect(each, { showHidden: true })).not.toContain(TOKEN);
      }
    },
  );

  it('does not reveal the token when a malformed response repeats the request and the error is logged', async () => {
    jest.spyOn(Math, 'random').mockReturnValue(1e6);
    const server = createServer((socket) => {
      socket.once('data', (bytes) => socket.end(`HTTP/1.1 200 OK\r\n broken ${bytes.toString()}`));
    });
    await connect();
    const url = await listen(server);
    const failure = await createAndFail(new PlantStoreClient({ url, token: TOKEN }));
    server.close();

    const { cause, outcome } = failure as CreationError;
    expect(outcome).toBe('unknown');
    expect(String(cause)).toMatch(/^Error: Response does not match the HTTP\/1\.1 protocol/);
    expect(inspect(failure, { showHidden: true, depth: null })).not.toContain(TOKEN);
  });

  const [key, cert] = ['key', 'crt'].map((end) => readFileSync(join(TLS, `server.${end}`)));
  const tlsServer = createTlsServer({ key, cert });
  afterAll(() => tlsServer.close());

  it.each<[string, () => unknown]>([
    ['ECONNREFUSED', async () => `http://localhost:${await findFreePort()}`],
    ['ENOTFOUND|EAI_AGAIN', () => 'http://plants.invalid'],
    ['bad port', () => 'http://localhost:6666'],
    ['self-signed certificate', async () => `https://localhost:${(await listen(tlsServer)).port}`],
  ])('reports that nothing is stored on %s', async (message, findUrl) => {
    // The pause is so long that the client makes no second attempt.
    jest.spyOn(Math, 'random').mockReturnValue(1e6);
    await connect();
    const url = String(await findUrl());
    const failure = await createAndFail(new PlantStoreClient({ url, token: TOKEN }));

    expect(failure).toMatchObject({ outcome: 'not stored' });
    expect(String(failure)).toMatch(new RegExp(`No connection: .*(${message})`));
  });

  const createError = (text: string, [code, syscall] = text.split(' ').reverse()) =>
    Object.assign(new Error(text), { code, syscall });
  /** Creates the error of the `fetch` of Node.js. */
  const failFetch = (...texts: string[]) =>
    new TypeError(String(texts), { cause: new AggregateError(texts.map((at) => createError(at))) });

  it.each([
    ['not stored', failFetch('connect ECONNREFUSED', 'connect ETIMEDOUT')],
    ['not stored', failFetch('UND_ERR_CONNECT_TIMEOUT')],
    ['not stored', failFetch('ERR_TLS_CERT_ALTNAME_INVALID')],
    ['unknown', failFetch('connect ECONNREFUSED', 'read ECONNRESET')],
    ['unknown', failFetch('read ECONNREFUSED')],
    ['unknown', failFetch()],
    // Bun
    ['unknown', createError('getaddrinfo ENOTFOUND')],
    ['unknown', null],
  ])('reports the outcome %s, and retries, when fetch rejects with %p', async (outcome, error) => {
    const client = await connect([taken]);
    jest.spyOn(globalThis, 'fetch').mockRejectedValueOnce(error);

    expect(await createAndFail(client)).toMatchObject({ error: errorNumbers.idTaken, outcome });
  });

  it('does not retry when a delayed timer leaves too little time', async () => {
    const failure = createAndFail(await connect([createRejection(bodies.unavailable, '20')]));
    const endPause = await findTimer(20_000);
    jest.spyOn(performance, 'now').mockReturnValue(Infinity);
    endPause();

    expect(await failure).toMatchObject(NOT_STORED);
    expect(seen()).toEqual([503]);
  });

  it.each(['20', 'Sun, 31 Jan 2027 12:00:20 GMT'])(
    'retries with one key until the plant is stored, after Retry-After: %s, and reports a replay',
    async (delay) => {
      jest.spyOn(Date, 'now').mockReturnValue(Date.parse('2027-01-31T12:00:00Z'));
      const current = ['old', 'old', 'new'];
      const faults = [createRejection(bodies.unavailable, delay), 'response lost' as const];
      const client = await connect(faults, () => Promise.resolve(current.shift() ?? ''));
      const creation = client.create(FERN);
      const endPause = await findTimer(20_000);
      expect(seen()).toEqual([503]);
      endPause();

      expect(await creation).toEqual(REPLAYED);
      expect(seen()).toEqual([503, 'response lost', 200]);
      expect(new Set(listHeader('idempotency-key')).size).toBe(1);
      expect(listHeader('authorization')).toEqual(['Bearer old', 'Bearer old', 'Bearer new']);
      expect(application.store.plants()).toEqual([FERN]);
    },
  );

  it('generates one key per create call unless the caller passes one', async () => {
    // Browsers lack it on pages without HTTPS.
    jest.spyOn(crypto, 'randomUUID').mockReturnValue('0-0-0-0-0');
    const client = await connect();
    const options = { idempotencyKey: 'caller-key' };

    expect(await client.create(FERN, options)).toEqual(STORED);
    expect(await client.create(FERN, options)).toEqual(REPLAYED);
    for (let count = 0; count < 2; count++) {
      expect(await createAndFail(client)).toMatchObject({ error: errorNumbers.idTaken });
    }
    expect(new Set(listHeader('idempotency-key')).size).toBe(3);
  });

  it('doubles the delay between attempts without Retry-After', async () => {
    // The delays are fractions, which distinguishes them from the delays of other timers.
    const part = 1 / 1024;
    jest.spyOn(Math, 'random').mockReturnValue(part);
    const client = await connect([...Array<Fault>(8).fill(createPage(503)), taken]);

    expect(await createAndFail(client, { timeout: Infinity })).toMatchObject({
      error: errorNumbers.idTaken,
    });
    const pauses = timers.mock.calls.map(([, time = 0]) => time).filter((time) => time % 1 !== 0);
    const longest = [100, 200, 400, 800, 1600, 3200, 5000, 5000];
    expect(pauses).toEqual(longest.map((time) => time * part));
  });

  const [forbidden, timeout, unknown, internal] = (
    ['forbidden', 'requestTimeout', 'outcomeUnknown', 'internal'] as const
  ).map((name) => createRejection(bodies[name])) as [Fault, Fault, Fault, Fault];

  it.each<[string, Fault[], CreationError['outcome'], error?: number]>([
    ['a rejection', [forbidden], 'not stored', errorNumbers.forbidden],
    ['408 and a rejection', [timeout, taken], 'not stored', errorNumbers.idTaken],
    ['504 and a rejection', [unknown, taken], 'unknown', errorNumbers.idTaken],
    ['a lost response and a rejection', ['response lost', taken], 'unknown', errorNumbers.idTaken],
    ['500', [internal], 'unknown', errorNumbers.internal],
    ["a proxy's 502 and a rejection", [createPage(502), taken], 'unknown', errorNumbers.idTaken],
    ["a proxy's 403", [createPage(403, '{"error":403,"message":"No"}')], 'unknown'],
    ['another name', [createPage(200, JSON.stringify({ ...CONTENT, name: 'Login' }))], 'unknown'],
    ['no tag', [createPage(200, JSON.stringify({ ...CONTENT, tag: undefined }))], 'unknown'],
    ['an Error with 200', [createPage(200, '{"error":20000,"message":""}')], 'unknown'],
    ['an Error with 302', [createPage(302, '{"error":30200,"message":""}')], 'unknown'],
  ])(
    'rejects without a retry, and reports whether the plant may be stored, after %s',
    // Jest would pass a callback as the fourth of four parameters.
    async (...[, faults, outcome, error]) => {
      const failure = (await createAndFail(await connect(faults))) as CreationError;

      const { status } = faults.at(-1) as { status: number };
      expect(failure).toMatchObject({ error, status, outcome });
      expect(failure.message.includes('is not a plant store response')).toBe(error === undefined);
      expect(seen()).toHaveLength(faults.length);
    },
  );

  it.each<[string, Fault[], Token, number, object]>([
    ['nothing responds', Array<Fault>(9).fill('no response'), TOKEN, 300, { outcome: 'unknown' }],
    ['there is no token', [], () => new Promise(() => undefined), 100, { outcome: 'not stored' }],
    ['each token is late', [], () => sleep(250, TOKEN), 400, { outcome: 'not stored' }],
    ['Retry-After is later', [createRejection(bodies.unavailable, '99')], TOKEN, 9e4, NOT_STORED],
  ])('gives up when %s', async (_what, faults, token, timeout, expected) => {
    jest.spyOn(Math, 'random').mockReturnValue(0);
    const failure = await createAndFail(await connect(faults, token), { timeout });

    expect(failure).toMatchObject(expected);
    expect(String(failure)).toMatch(/^CreationError: Gave up after \d+ ms\. /);
  });

  it('gives up when Retry-After is later than 60 seconds, by default', async () => {
    const failure = await createAndFail(await connect([createRejection(bodies.unavailable, '60')]));

    expect(failure).toMatchObject(NOT_STORED);
    expect(String(failure)).toContain('Gave up after 60000 ms.');
  });

  it('retries on a new connection when the first gets no response', async () => {
    const client = await connect(['no response']);
    const creation = client.create(FERN);
    await until(() => seen().length === 1);
    const endAttempt = await findTimer(ATTEMPT_TIMEOUT_MS);
    endAttempt();

    expect(await creation).toEqual(STORED);
    expect(seen()).toEqual(['no response', 200]);
  });

  it('accepts a time-out that no timer can have', async () => {
    expect(await (await connect()).create(FERN, { timeout: 2 ** 40 })).toEqual(STORED);
  });

  it.each([
    ['sold out', () => Promise.reject(new Error('sold out'))],
    ['token must be a non-empty string of visible ASCII characters.', () => 'a\nb'],
    // A text that cannot be shown.
    ['see the cause', () => Promise.reject(Object.create(null) as Error)],
  ])('rejects when the token function throws: %s', async (cause, token) => {
    const failure = (await createAndFail(await connect([], token))) as CreationError;

    const message = `The request cannot be created: ${cause}`;
    expect(failure).toMatchObject({ name: 'CreationError', message, outcome: 'not stored' });
    expect(failure.cause).toBeDefined();
    expect(seen()).toEqual([]);
  });

  it.each<[string, Fault[], () => unknown, object]>([
    ['before the first attempt', [], () => undefined, { error: undefined, outcome: 'not stored' }],
    [
      'during an attempt',
      ['no response'],
      () => until(() => seen().length === 1),
      { status: undefined, outcome: 'unknown' },
    ],
    [
      'between attempts',
      [createRejection(bodies.unavailable, '9999999')],
      // Node.js would fire a timer with a longer delay at once.
      () => findTimer(2 ** 31 - 1),
      NOT_STORED,
    ],
  ])('rejects on an abort %s', async (_when, faults, moment, expected) => {
    const controller = new AbortController();
    const reason = new Error('changed my mind');
    if (faults.length === 0) controller.abort(reason);
    const options = { signal: controller.signal, timeout: Infinity };
    const failure = createAndFail(await connect(faults), options);
    await moment();
    controller.abort(reason);

    expect(await failure).toMatchObject({ ...expected, cause: reason });
    expect(seen()).toHaveLength(faults.length);
  });
});

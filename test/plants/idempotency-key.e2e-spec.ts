import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PlantsRepository } from '../../src/plants';
import { type Headers, TestApplication, TOKEN } from '../support/application';
import { errorBodies } from '../support/error-bodies';
import { useFolder } from '../support/folder';
import { AUDIENCE, makeKey, OpenIdProvider } from '../support/openid-provider';
import { lockDatabase } from '../support/sqlite';
import { stores, type TestStore } from '../support/stores';
import { until } from '../support/until';

const FERN = '{"id":1,"name":"Fern","tag":"shade"}';
const MOSS = '{"id":1,"name":"Moss"}';

/** What a creation was answered: the number of the error, or whether it was created or replayed. */
async function create(
  application: TestApplication<TestStore>,
  key: string | string[] | undefined,
  body = FERN,
  headers: Headers = {},
): Promise<string | number> {
  const response = await application.post(body, { 'idempotency-key': key, ...headers });
  if (response.statusCode !== 200) return response.json<{ error: number }>().error;
  return response.headers['idempotent-replayed'] === 'true' ? 'replayed' : 'created';
}

describe.each(stores)('a creation with Idempotency-Key, stored in %s', (_name, startStore) => {
  let store: TestStore;
  let application: TestApplication<TestStore>;
  /** Another instance on the same store. */
  let second: TestApplication<TestStore>;
  beforeAll(async () => {
    store = await startStore();
    application = await TestApplication.start({}, store);
    second = await TestApplication.start({}, store);
  });
  beforeEach(() => store.removePlants());
  afterAll(async () => {
    await second.app.close();
    await application.stop();
  });

  it('is answered as without it the first time, and again with a header that says so', async () => {
    const first = await application.post(FERN, { 'idempotency-key': 'abc' });
    const again = await second.post(FERN, { 'idempotency-key': 'abc' });

    for (const { statusCode, body } of [first, again]) {
      expect([statusCode, body]).toEqual([200, '{"name":"Fern","tag":"shade"}']);
    }
    expect(first.headers).not.toHaveProperty('idempotent-replayed');
    expect(again.headers['idempotent-replayed']).toBe('true');
    expect(await store.plants()).toHaveLength(1);
  });

  it('is refused when the plant was created with other content, another key or none', async () => {
    await create(application, 'abc');
    await create(application, undefined, '{"id":2,"name":"Fern"}');

    const response = await second.post(MOSS, { 'idempotency-key': 'abc' });

    expect(response.json()).toEqual(errorBodies.keyReused);
    expect(await create(application, 'abcd')).toBe(40003);
    expect(await create(application, undefined)).toBe(40003);
    expect(await create(application, 'abc', '{"id":2,"name":"Fern"}')).toBe(40003);
    expect(await store.plants()).toContainEqual({ id: 1n, name: 'Fern', tag: 'shade' });
  });

  it.each([
    ['another form of the id', '{"id":1.0,"name":"Fern","tag":"shade"}'],
    ['escapes', '{"id":1,"n\\u0061me":"F\\u0065rn","tag":"sh\\u0061de"}'],
    ['another order and white space', ' { "tag" : "shade", "name" : "Fern", "id" : 1 } '],
    ['a member twice', '{"id":2,"name":"Fern","tag":"shade","id":1}'],
  ])('is a repetition with %s', async (_what, body) => {
    await create(application, 'abc');

    expect(await create(application, 'abc', body)).toBe('replayed');
  });

  it('may be repeated after a refusal, until it is stored', async () => {
    expect(await create(application, 'abc', '{"id":1}')).toBe(40002);
    expect(await create(application, 'abc')).toBe('created');
    expect(await create(application, 'abc', '{"id":1}')).toBe(40002);
    expect(await create(application, 'abc')).toBe('replayed');
  });

  describe('the key', () => {
    it.each([
      ['"abc"', 'abc'],
      ['"a\\"b\\\\c,;"', '"a\\"b\\\\c,;"'],
      ['~'.repeat(255), `"${'~'.repeat(255)}"`],
      ['\\', '"\\\\"'],
    ])('%s is the same as %s', async (one, other) => {
      expect(await create(application, one)).toBe('created');
      expect(await create(application, other)).toBe('replayed');
    });

    it.each([
      ['abc', 'ABC'],
      ['abc', "'abc'"],
      ['abc', '"abc;"'],
    ])('%s is another than %s', async (one, other) => {
      await create(application, one);

      expect(await create(application, other)).toBe(40003);
    });

    // openapi.e2e-spec.ts tries all that is like these.
    it.each([
      'a b',
      '"a"b"',
      'x'.repeat(256),
      // Nothing at all would be left out here.
      [''],
    ])('%j is refused', async (key) => {
      const response = await application.post(FERN, { 'idempotency-key': key });

      expect(response.json()).toEqual(errorBodies.keyMalformed);
      expect(await store.plants()).toEqual([]);
    });

    it('is refused when it is sent twice, even with the same value', async () => {
      const response = await application.post(FERN, { 'idempotency-key': ['abc', 'abc'] });

      expect(response.json()).toEqual(errorBodies.keyTwice);
    });

    it('is judged after the token', async () => {
      expect(await create(application, 'a b', FERN, { authorization: undefined })).toBe(40100);
    });
  });
});

describe('Idempotency-Key', () => {
  const folder = useFolder();
  let application: TestApplication;
  afterEach(() => application.stop());

  const as = (token: string) =>
    create(application, 'abc', FERN, { authorization: `Bearer ${token}` });

  it('of one caller is not that of another', async () => {
    const tokensFile = join(folder, 'tokens.txt');
    writeFileSync(tokensFile, `old ${AUDIENCE}\nnew ${AUDIENCE}\nof-bob bob\nunnamed`);
    const provider = await OpenIdProvider.start(makeKey('ES256'));
    application = await TestApplication.start({
      AUTH_TOKENS_FILE: tokensFile,
      AUTH_ISSUER: provider.issuer,
      AUTH_AUDIENCE: AUDIENCE,
    });

    expect(await as('old')).toBe('created');
    expect(await as('of-bob')).toBe(40003);
    expect(await as('unnamed')).toBe(40003);
    expect(await as(TOKEN)).toBe(40003);
    // Its subject is the audience too.
    expect(await as(await provider.accessToken())).toBe(40003);
    expect(await as('new')).toBe('replayed');
    await provider.stop();
  });

  it('of a token without a name goes with the token, not with its place in the list', async () => {
    application = await TestApplication.start({ AUTH_TOKENS: 'one-token,other-token' });
    expect(await as('one-token')).toBe('created');

    const { store } = application;
    await application.app.close();
    application = await TestApplication.start({ AUTH_TOKENS: 'other-token,one-token' }, store);

    expect(await as('other-token')).toBe(40003);
    expect(await as('one-token')).toBe('replayed');
  });

  it('may be sent again after 50300, and the plant is stored once', async () => {
    application = await TestApplication.start();
    const lock = lockDatabase(application.store.file);

    expect(await create(application, 'abc')).toBe(50300);
    lock.close();
    await until(() => application.app.get(PlantsRepository).isReady());

    expect(await create(application, 'abc')).toBe('created');
    expect(await create(application, 'abc')).toBe('replayed');
  });
});

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Headers, TestApplication, TOKEN } from '../support/application';
import { errorBodies, errorNumbers } from '../support/error-bodies';
import { useFolder } from '../support/folder';
import { AUDIENCE, makeKey, OpenIdProvider } from '../support/openid-provider';

const FERN = '{"id":1,"name":"Fern","tag":"shade"}';
const MOSS = '{"id":1,"name":"Moss"}';

/** Sends a create request. Returns the error number, or whether the plant was created or replayed. */
async function create(
  application: TestApplication,
  key: string | undefined,
  body = FERN,
  headers: Headers = {},
): Promise<string | number> {
  const response = await application.post(body, { 'idempotency-key': key, ...headers });
  if (response.statusCode !== 200) return response.json<{ error: number }>().error;
  return response.headers['idempotent-replayed'] === 'true' ? 'replayed' : 'created';
}

// repository.contract.ts tests the keys in each store.
describe('a create request with an Idempotency-Key', () => {
  const application = TestApplication.use();
  beforeEach(() => {
    application.store.removePlants();
  });

  it('gets the normal response first, and Idempotent-Replayed in addition for a retry', async () => {
    const first = await application.post(FERN, { 'idempotency-key': 'abc' });
    const again = await application.post(FERN, { 'idempotency-key': 'abc' });

    for (const { statusCode, body } of [first, again]) {
      expect([statusCode, body]).toEqual([200, '{"name":"Fern","tag":"shade"}']);
    }
    expect(first.headers).not.toHaveProperty('idempotent-replayed');
    expect(again.headers['idempotent-replayed']).toBe('true');
    expect(application.store.plants()).toHaveLength(1);
  });

  it('is rejected when the plant was created with other content, another key or without a key', async () => {
    await create(application, 'abc');
    await create(application, undefined, '{"id":2,"name":"Fern"}');

    const response = await application.post(MOSS, { 'idempotency-key': 'abc' });

    expect(response.json()).toEqual(errorBodies.keyReused);
    for (const other of ['abcd', 'ABC', "'abc'", '"abc;"', undefined]) {
      expect(await create(application, other)).toBe(errorNumbers.idTaken);
    }
    expect(await create(application, 'abc', '{"id":2,"name":"Fern"}')).toBe(errorNumbers.idTaken);
    expect(application.store.plants()).toContainEqual({ id: 1n, name: 'Fern', tag: 'shade' });
  });

  it('is replayed for the same plant in different JSON formatting', async () => {
    await create(application, 'abc');

    const body = ' {"id": 2, "t\\u0061g": "shade", "name": "F\\u0065rn", "id": 1.0}';
    expect(await create(application, 'abc', body)).toBe('replayed');
  });

  it('can be retried after a rejection until the plant is stored', async () => {
    expect(await create(application, 'abc', '{"id":1}')).toBe(errorNumbers.idMissing);
    expect(await create(application, 'abc')).toBe('created');
    expect(await create(application, 'abc', '{"id":1}')).toBe(errorNumbers.idMissing);
    expect(await create(application, 'abc')).toBe('replayed');
  });

  it.each([
    ['"abc"', 'abc'],
    ['"a\\"b\\\\c,;"', '"a\\"b\\\\c,;"'],
    ['~'.repeat(255), `"${'~'.repeat(255)}"`],
    ['\\', '"\\\\"'],
  ])('has the same key with %s as with %s', async (one, other) => {
    expect(await create(application, one)).toBe('created');
    expect(await create(application, other)).toBe('replayed');
  });

  // openapi.e2e-spec.ts tests all keys.
  it.each([
    ['malformed', 'a b', errorBodies.keyMalformed],
    ['sent twice, even with the same value', ['abc', 'abc'], errorBodies.keyMalformed],
  ])('is rejected when the key is %s', async (_what, key, expected) => {
    const response = await application.post(FERN, { 'idempotency-key': key });

    expect(response.json()).toEqual(expected);
    expect(application.store.plants()).toEqual([]);
  });
});

describe('Idempotency-Key', () => {
  const folder = useFolder();
  let application: TestApplication;
  afterEach(() => application.stop());

  const as = (token: string) =>
    create(application, 'abc', FERN, { authorization: `Bearer ${token}` });

  it('is separate for each caller', async () => {
    const tokensFile = join(folder, 'tokens.txt');
    writeFileSync(tokensFile, `old ${AUDIENCE}\nnew ${AUDIENCE}\nof-bob bob\nunnamed`);
    const provider = await OpenIdProvider.start(makeKey('ES256'));
    application = await TestApplication.start({
      AUTH_TOKENS_FILE: tokensFile,
      AUTH_ISSUER: provider.issuer,
      AUTH_AUDIENCE: AUDIENCE,
    });

    expect(await as('old')).toBe('created');
    expect(await as('of-bob')).toBe(errorNumbers.idTaken);
    expect(await as('unnamed')).toBe(errorNumbers.idTaken);
    expect(await as(TOKEN)).toBe(errorNumbers.idTaken);
    // The subject of this token is also the audience.
    expect(await as(await provider.requestAccessToken())).toBe(errorNumbers.idTaken);
    expect(await as('new')).toBe('replayed');
    await provider.stop();
  });

  it('belongs to an unnamed token itself, not to the position of the token in the list', async () => {
    application = await TestApplication.start({ AUTH_TOKENS: 'one-token,other-token' });
    expect(await as('one-token')).toBe('created');

    const { store } = application;
    await application.app.close();
    application = await TestApplication.start({ AUTH_TOKENS: 'other-token,one-token' }, store);

    expect(await as('other-token')).toBe(errorNumbers.idTaken);
    expect(await as('one-token')).toBe('replayed');
  });
});

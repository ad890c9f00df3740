import type { ErrorBody, Plant } from '../../src/plants';
import { TestApplication } from '../support/application';
import { errorBodies, errorNumbers } from '../support/error-bodies';
import { stores, type TestStore } from '../support/stores';

type Body = string | Buffer | undefined;

const FERN = '{"id":1,"name":"Fern"}';
const LIMIT = 64 * 1024;
const EXACT = 9_007_199_254_740_993n;

const withId = (literal: string) => `{"id":${literal},"name":"Fern"}`;
const withName = (literal: string) => `{"id":1,"name":${literal}}`;
const withTag = (literal: string) => `{"id":1,"name":"Fern","tag":${literal}}`;
const withBytes = (bytes: number[]) =>
  Buffer.concat(['{"id":1,"name":"', bytes, '"}'].map((part) => Buffer.from(part)));

describe.each(stores)('POST /plants, stored in %s', (_name, startStore) => {
  let application: TestApplication<TestStore>;
  let store: TestStore;
  beforeAll(async () => {
    store = await startStore();
    application = await TestApplication.start({}, store);
  });
  beforeEach(() => store.removePlants());
  afterAll(() => application.stop());

  /** @param properties the properties that differ from {@link FERN} */
  async function expectCreation(body: string, properties: Partial<Plant> = {}): Promise<void> {
    const { id, ...content }: Plant = { id: 1n, name: 'Fern', ...properties };

    const response = await application.post(body);

    expect(response.json()).toEqual(content);
    expect(response.statusCode).toBe(200);
    expect(await store.plants()).toEqual([{ id, ...content }]);
  }

  async function expectRejection(body: Body, expected: ErrorBody, headers = {}): Promise<void> {
    const response = await application.post(body, headers);

    const sent = { body: body?.slice(0, 60), headers };
    expect({ sent, body: response.json<unknown>() }).toEqual({ sent, body: expected });
    expect(response.statusCode).toBe(400);
    expect(await store.plants()).toEqual([]);
  }

  it('returns 200 with all properties except the id, and stores the plant', async () => {
    const response = await application.post(withTag('"shade"'));

    expect(await store.plants()).toEqual([{ id: 1n, name: 'Fern', tag: 'shade' }]);
    expect(response.statusCode).toBe(200);
    expect(response.body).toBe('{"name":"Fern","tag":"shade"}');
  });

  // int64.spec.ts tests all numbers.
  it.each([
    ['9.223372036854775807e18', 9_223_372_036_854_775_807n],
    ['-9223372036854775808', -9_223_372_036_854_775_808n],
  ])('stores the id %s as %s', (literal, id) => expectCreation(withId(literal), { id }));

  it.each([
    ['the empty string', '""', ''],
    ['white space, untrimmed', '" Fern\\t "', ' Fern\t '],
    ['a supplementary character as an escaped pair', '"\\ud83c\\udf3f"', '🌿'],
    ['a decomposed character, unnormalized', '"e\u0301"', 'e\u0301'],
  ])('stores %s in each property', async (_what, literal, text) => {
    await expectCreation(`{"id":1,"name":${literal},"tag":${literal}}`, { name: text, tag: text });
  });

  it.each([
    ['unknown ones', '{"color":"green","id":1,"name":"Fern","size":{"cm":40}}'],
    ['__proto__', '{"__proto__":{"tag":"shade"},"id":1,"name":"Fern"}'],
    ['ill-formed strings in unknown ones', '{"x":"\\ud800\\u0000","id":1,"name":"Fern"}'],
    ['500 arrays', `{"x":${'['.repeat(500)}${']'.repeat(500)},"id":1,"name":"Fern"}`],
  ])('ignores properties: %s', (_what, body) => expectCreation(body));

  // json.spec.ts tests all objects.
  it('uses the last value of a repeated property', () =>
    expectCreation('{"id":"2","name":"Moss","\\u0069d":9007199254740993,"name":"Fern"}', {
      id: EXACT,
    }));

  it('accepts a body that is as large as the limit', () => expectCreation(FERN.padEnd(LIMIT)));

  it.each<[ErrorBody, Body[]]>([
    [errorBodies.idNotInt64, ['9223372036854775808', '1.000000000000000005', '1E400'].map(withId)],
    [errorBodies.idNotNumber, ['"7"', 'true', 'null', '[1]', '{"id":1}'].map(withId)],
    [errorBodies.idMissing, ['{"plant":{"id":1,"name":"Fern"},"name":"Fern"}']],
    [errorBodies.nameMissing, ['{"id":1}', '{"__proto__":{"id":1,"name":"Fern"},"id":1}']],
    [errorBodies.nameNotString, ['null', '7', 'true', '["Fern"]', '{"name":"Fern"}'].map(withName)],
    [errorBodies.nameNotExact, ['"\\ud800"', '"\\udf3f\\ud83c"', '"Fern\\u0000"'].map(withName)],
    [errorBodies.tagNotString, ['null', '7', 'false', '[]', '{}'].map(withTag)],
    [errorBodies.tagNotExact, ['"\\udfff"', '"\\u0000"'].map(withTag)],
    [errorBodies.notAnObject, ['[]', '"plant"', '7', 'null', 'true']],
    [errorBodies.empty, ['', undefined]],
    [
      errorBodies.notUtf8,
      [[0x80], [0xed, 0xa0, 0x80], [0xf0, 0x9f, 0x8c], [0xff, 0xfe]].map(withBytes),
    ],
    [errorBodies.tooLarge, [FERN.padEnd(LIMIT + 1)]],
  ])('rejects with %j', async (expected, bodies) => {
    for (const body of bodies) await expectRejection(body, expected);
  });

  it('reports every invalid property in one response', () =>
    expectRejection('{"id":"7","name":null,"tag":0}', {
      error: errorNumbers.idMissing,
      message:
        'Not a NewPlant: id must be a JSON number, an integer from -9223372036854775808 to 9223372036854775807; ' +
        'name must be a string; tag must be a string.',
    }));

  it.each([
    ['an unfinished object', '{"id":1,"name":"Fern"'],
    ['a byte order mark', `\ufeff${FERN}`],
    ['a character of two surrogates', '{"id":🌿}'],
    ['60,000 arrays that never close', '['.repeat(6e4)],
    ['30,000 arrays', `{"x":${'['.repeat(3e4)}${']'.repeat(3e4)},"id":1,"name":"Fern"}`],
  ])('rejects a body that is not JSON: %s', async (_what, body) => {
    const message = expect.stringMatching(/^Not JSON: [ -~]{1,100}$/) as string;

    await expectRejection(body, { error: errorNumbers.empty, message });
  });

  // media-type.spec.ts tests further values.
  it.each([
    { 'content-type': 'Application/JSON;charset="UTF-8" ; a=b' },
    { 'content-type': 'application/json; charset=utf8' },
    ...['Identity', 'identity, identity', ' ,'].map((coding) => ({ 'content-encoding': coding })),
  ])('accepts a body with %j', async (headers) => {
    expect((await application.post(FERN, headers)).statusCode).toBe(200);
  });

  it.each<[string, ErrorBody, (string | undefined)[]]>([
    ['content-type', errorBodies.mediaType, [undefined, 'text/plain', '@@@']],
    ['content-encoding', errorBodies.contentEncoding, ['gzip', 'identity, gzip', 'x']],
  ])('rejects a body because of its %s', async (field, expected, values) => {
    for (const value of values) await expectRejection(FERN, expected, { [field]: value });
  });

  it('rejects an existing id, reveals nothing of the stored plant, and keeps it', async () => {
    await application.post('{"id":9007199254740993,"name":"Fern"}');

    const response = await application.post('{"id":9007199254740993,"name":"Moss"}');

    expect(response.statusCode).toBe(400);
    expect(response.json()).toEqual(errorBodies.idTaken);
    expect(await store.plants()).toEqual([{ id: EXACT, name: 'Fern' }]);
  });
});

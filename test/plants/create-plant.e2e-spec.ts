import type { ErrorBody } from '../../src/plants';
import { TestApplication } from '../support/application';
import { errorBodies } from '../support/error-bodies';
import { stores, type TestStore } from '../support/stores';

const FERN = '{"id":1,"name":"Fern"}';
const SHADE_FERN = '{"id":1,"name":"Fern","tag":"shade"}';

describe.each(stores)('POST /plants, stored in %s', (_name, startStore) => {
  let application: TestApplication<TestStore>;
  let store: TestStore;
  beforeAll(async () => {
    store = await startStore();
    application = await TestApplication.start({}, store);
  });
  beforeEach(() => store.removePlants());
  afterAll(() => application.stop());

  async function expectRefusal(
    body: string | Buffer | undefined,
    expected: ErrorBody,
    headers = {},
  ): Promise<void> {
    const response = await application.post(body, headers);

    expect(response.json()).toEqual(expected);
    expect(response.statusCode).toBe(400);
    expect(await store.plants()).toEqual([]);
  }

  it('answers 200 with name and tag and nothing else, and has stored the plant', async () => {
    const response = await application.post(SHADE_FERN);

    expect(await store.plants()).toEqual([{ id: 1n, name: 'Fern', tag: 'shade' }]);
    expect(response.statusCode).toBe(200);
    expect(response.body).toBe('{"name":"Fern","tag":"shade"}');
  });

  it('answers a plant without a tag without one', async () => {
    expect((await application.post(FERN)).body).toBe('{"name":"Fern"}');
  });

  describe('the id', () => {
    it.each([
      ['0', 0n],
      ['-0', 0n],
      ['1.0', 1n],
      ['12.50e1', 125n],
      ['0E999999999', 0n],
      ['9007199254740993', 9_007_199_254_740_993n],
      ['9223372036854775807', 9_223_372_036_854_775_807n],
      ['-9223372036854775808', -9_223_372_036_854_775_808n],
      ['9.223372036854775807e18', 9_223_372_036_854_775_807n],
    ])('%s is stored as %s', async (literal, id) => {
      const response = await application.post(`{"id":${literal},"name":"Fern"}`);

      expect(response.statusCode).toBe(200);
      expect(await store.plants()).toEqual([{ id, name: 'Fern' }]);
    });

    it.each([
      ...['9223372036854775808', '-9223372036854775809', '1.5', '1.000000000000000005', '1E-999'],
      ...['1E400', '1E999999999999999999999', '"7"', 'true', 'null', '[1]', '{"id":1}'],
    ])('%s is refused', (literal) => {
      const { idNotInt64, idNotNumber } = errorBodies;
      const expected = /^[-\d]/.test(literal) ? idNotInt64 : idNotNumber;
      return expectRefusal(`{"id":${literal},"name":"Fern"}`, expected);
    });

    it('is required in the outermost object', () =>
      expectRefusal('{"plant":{"id":1,"name":"Fern"},"name":"Fern"}', errorBodies.idMissing));
  });

  describe('the name', () => {
    it.each([
      ['the empty string', '""', ''],
      ['white space, untrimmed', '" Fern\\t "', ' Fern\t '],
      ['escapes', '"\\u0046\\"\\\\\\/\\n"', 'F"\\/\n'],
      ['a supplementary character as an escaped pair', '"\\ud83c\\udf3f"', '🌿'],
      ['a decomposed character, unnormalised', '"e\u0301"', 'e\u0301'],
      ['a noncharacter', '"\uffff"', '\uffff'],
      ['a byte order mark within the string', '"\ufeffFern"', '\ufeffFern'],
    ])('may be %s', async (_what, literal, name) => {
      const response = await application.post(`{"id":1,"name":${literal}}`);

      expect(response.json()).toEqual({ name });
      expect(await store.plants()).toEqual([{ id: 1n, name }]);
    });

    it.each(['null', '7', 'true', '["Fern"]', '{"name":"Fern"}'])('is no %s', (literal) =>
      expectRefusal(`{"id":1,"name":${literal}}`, errorBodies.nameNotString),
    );

    it.each(['"\\ud800"', '"\\udf3f\\ud83c"', '"Fern\\u0000"'])(
      'is not %s, which no store keeps exactly',
      (literal) => expectRefusal(`{"id":1,"name":${literal}}`, errorBodies.nameNotExact),
    );

    it('is required', () => expectRefusal('{"id":1}', errorBodies.nameMissing));
  });

  describe('the tag', () => {
    it('may be the empty string', async () => {
      const response = await application.post('{"id":1,"name":"Fern","tag":""}');

      expect(response.json()).toEqual({ name: 'Fern', tag: '' });
      expect(await store.plants()).toEqual([{ id: 1n, name: 'Fern', tag: '' }]);
    });

    it.each(['null', '7', 'false', '[]', '{}'])('is no %s', (literal) =>
      expectRefusal(`{"id":1,"name":"Fern","tag":${literal}}`, errorBodies.tagNotString),
    );

    it.each(['"\\udfff"', '"\\u0000"'])('is not %s', (literal) =>
      expectRefusal(`{"id":1,"name":"Fern","tag":${literal}}`, errorBodies.tagNotExact),
    );
  });

  it('names every field at fault at once', async () => {
    const response = await application.post('{"id":"7","name":null,"tag":0}');

    expect(response.json()).toEqual({
      error: 40002,
      message:
        'Not a NewPlant: id must be a JSON number, an integer from -9223372036854775808 to 9223372036854775807; ' +
        'name must be a string; tag must be a string.',
    });
  });

  describe('members', () => {
    it.each([
      ['unknown ones', '{"colour":"green","id":1,"name":"Fern","size":{"cm":40}}'],
      ['__proto__', '{"__proto__":{"tag":"shade"},"id":1,"name":"Fern"}'],
      ['constructor', '{"constructor":{"prototype":{"tag":"shade"}},"id":1,"name":"Fern"}'],
      ['ill-formed strings in unknown ones', '{"x":"\\ud800\\u0000","id":1,"name":"Fern"}'],
      ['unknown ones whose keys look alike', '{"ID":2,"\\"id\\"":3,"id ":4,"id":1,"name":"Fern"}'],
    ])('are ignored: %s', async (_what, body) => {
      const response = await application.post(body);

      expect(response.json()).toEqual({ name: 'Fern' });
      expect(await store.plants()).toEqual([{ id: 1n, name: 'Fern' }]);
    });

    it('are not taken from a __proto__ member', () =>
      expectRefusal('{"__proto__":{"id":1,"name":"Fern"},"id":1}', errorBodies.nameMissing));

    it.each([
      ['{"id":2,"name":"Moss","id":1,"name":"Fern"}', 1n],
      ['{"id":"2","name":"Fern","id":1}', 1n],
      ['{"id":2,"name":"Fern","\\u0069d":9007199254740993}', 9_007_199_254_740_993n],
      ['{"id":9007199254740993,"x":{"id":5},"name":"Fern"}', 9_007_199_254_740_993n],
    ])('count as last given: %s', async (body, id) => {
      const response = await application.post(body);

      expect(response.statusCode).toBe(200);
      expect(await store.plants()).toEqual([{ id, name: 'Fern' }]);
    });

    it('are validated as last given, and as written', () =>
      expectRefusal('{"id":1,"name":"Fern","id":1.000000000000000005}', errorBodies.idNotInt64));

    it('may nest 400,000 deep when they are unknown', async () => {
      const nested = '['.repeat(400_000) + ']'.repeat(400_000);

      const response = await application.post(`{"x":${nested},"id":1,"name":"Fern"}`);

      expect(response.statusCode).toBe(200);
      expect(await store.plants()).toEqual([{ id: 1n, name: 'Fern' }]);
    });
  });

  describe('the body', () => {
    it.each(['[]', '"plant"', '7', 'null', 'true'])('must be an object, not %s', (body) =>
      expectRefusal(body, errorBodies.notAnObject),
    );

    it.each([
      ['an unfinished object', '{"id":1,"name":"Fern"'],
      ['a trailing comma', '{"id":1,"name":"Fern",}'],
      ['two values', '{"id":1,"name":"Fern"}{}'],
      ['a comment', '{"id":1,/**/"name":"Fern"}'],
      ['a control character in a string', '{"id":1,"name":"Fe\nrn"}'],
      ['a byte order mark', '\ufeff{"id":1,"name":"Fern"}'],
      ['white space only', '  '],
      ['a character of two surrogates', '{"id":🌿}'],
      ['400,000 arrays that never close', '['.repeat(400_000)],
    ])('must be JSON, not %s', async (_what, body) => {
      const response = await application.post(body);

      expect(response.json()).toEqual({
        error: 40001,
        message: expect.stringMatching(/^Not JSON: [ -~]{1,100}$/) as string,
      });
      expect(response.statusCode).toBe(400);
      expect(await store.plants()).toEqual([]);
    });

    it.each(['', undefined])('must not be empty: %j', (body) =>
      expectRefusal(body, errorBodies.empty),
    );

    it.each([
      ['a lone continuation byte', [0x80]],
      ['an encoded surrogate', [0xed, 0xa0, 0x80]],
      ['a truncated character', [0xf0, 0x9f, 0x8c]],
      ['a byte order mark of UTF-16', [0xff, 0xfe]],
    ])('must be UTF-8, not %s', (_what, bytes) => {
      const parts = ['{"id":1,"name":"', bytes, '"}'].map((part) => Buffer.from(part));

      return expectRefusal(Buffer.concat(parts), errorBodies.notUtf8);
    });

    it('must not be larger than the limit', () =>
      expectRefusal(`{"id":1,"name":"${'x'.repeat(2 ** 20)}"}`, errorBodies.tooLarge));

    it('may be as large as the limit', async () => {
      const name = 'x'.repeat(2 ** 20 - '{"id":1,"name":""}'.length);

      const response = await application.post(`{"id":1,"name":"${name}"}`);

      expect(response.json()).toEqual({ name });
    });
  });

  // media-type.spec.ts tries all that is like these.
  describe('the media type', () => {
    it.each(['Application/JSON', 'application/json;charset="UTF-8" ; a=b'])(
      'may be %s',
      async (type) => {
        const response = await application.post(FERN, { 'content-type': type });

        expect(response.statusCode).toBe(200);
      },
    );

    it.each([
      ...[undefined, 'text/plain', 'application/x-www-form-urlencoded', 'application/json; a="b'],
      ...['multipart/form-data; boundary=x', 'application/json; charset=utf-16', '/json', '@@@'],
    ])('must not be %s', (type) =>
      expectRefusal(FERN, errorBodies.mediaType, { 'content-type': type }),
    );
  });

  describe('the coding', () => {
    it.each(['Identity', 'identity, identity', ' ,'])('may be %j', async (coding) => {
      const response = await application.post(FERN, { 'content-encoding': coding });

      expect(response.statusCode).toBe(200);
    });

    it.each(['gzip', 'identity, gzip', 'x'])('must not be %s', (coding) =>
      expectRefusal(FERN, errorBodies.contentEncoding, { 'content-encoding': coding }),
    );
  });

  describe('an id that is taken', () => {
    it('is refused without revealing the stored plant, which stays', async () => {
      await application.post('{"id":9007199254740993,"name":"Fern"}');

      const response = await application.post('{"id":9007199254740993,"name":"Moss"}');

      expect(response.statusCode).toBe(400);
      expect(response.json()).toEqual(errorBodies.idTaken);
      expect(await store.plants()).toEqual([{ id: 9_007_199_254_740_993n, name: 'Fern' }]);
    });

    it('goes to exactly one of 100 identical creations at once', async () => {
      const creations = Array.from({ length: 100 }, () => application.post(FERN));

      const answers = (await Promise.all(creations)).map((response) => response.body);

      const refusal = JSON.stringify(errorBodies.idTaken);
      expect(answers.toSorted()).toEqual([...Array<string>(99).fill(refusal), '{"name":"Fern"}']);
    });
  });
});

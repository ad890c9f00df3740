import { createHash } from 'node:crypto';
import type { ErrorBody } from '../../src/plants';
import { answerOf, TestApplication, TOKEN } from '../support/application';
import { expectAsDeclared } from '../support/contract';
import { errorBodies } from '../support/error-bodies';
import { stores, type TestStore } from '../support/stores';

const OTHER_TOKEN = 'another/valid+token==';

describe.each(stores)(
  'the bearer token of a request that creates plants in %s',
  (_name, startStore) => {
    let application: TestApplication<TestStore>;
    let nextId = 1;
    beforeAll(async () => {
      const digest = createHash('sha256').update(OTHER_TOKEN).digest('hex');
      application = await TestApplication.start(
        { AUTH_TOKENS: `${TOKEN},sha256:${digest}` },
        await startStore(),
      );
    });
    afterAll(() => application.stop());

    const post = (authorization: string | string[] | undefined, body = newPlant()) =>
      application.post(body, { authorization });
    const newPlant = () => `{"id":${nextId++},"name":"Fern"}`;

    it.each([
      ['as configured', `Bearer ${TOKEN}`],
      ['as configured by its digest', `Bearer ${OTHER_TOKEN}`],
      ['with the scheme in another case', `bEARER ${TOKEN}`],
      ['after several spaces', `Bearer   ${TOKEN}`],
    ])('is valid %s', async (_how, authorization) => {
      expect((await post(authorization)).statusCode).toBe(200);
    });

    it.each<[string, string | string[] | undefined]>([
      ['absent', undefined],
      ['of another scheme', 'Basic YTpi'],
      ['of a scheme that begins alike', `Bearers ${TOKEN}`],
      ['the token alone', TOKEN],
    ])('is missing when the credentials are %s', async (_what, authorization) => {
      const response = await post(authorization);

      expect(response.statusCode).toBe(401);
      expect(response.json()).toEqual(errorBodies.missingCredentials);
      expect(response.headers['www-authenticate']).toBe('Bearer realm="plants"');
    });

    it.each<[string, string | string[], ErrorBody]>([
      ['unknown', 'Bearer x', errorBodies.invalidToken],
      ['a prefix', `Bearer ${TOKEN.slice(0, -1)}`, errorBodies.invalidToken],
      ['longer', `Bearer ${TOKEN}x`, errorBodies.invalidToken],
      ['in another case', `Bearer ${TOKEN.toUpperCase()}`, errorBodies.invalidToken],
      [
        'the digest itself',
        `Bearer ${createHash('sha256').update(TOKEN).digest('hex')}`,
        errorBodies.invalidToken,
      ],
      ['empty', 'Bearer', errorBodies.malformedCredentials],
      ['a space', 'Bearer  ', errorBodies.malformedCredentials],
      ['after a tab', `Bearer\t${TOKEN}`, errorBodies.malformedCredentials],
      ['two tokens', `Bearer ${TOKEN} ${TOKEN}`, errorBodies.malformedCredentials],
      ['a list', `Bearer ${TOKEN}, Bearer ${TOKEN}`, errorBodies.malformedCredentials],
      ['quoted', `Bearer "${TOKEN}"`, errorBodies.malformedCredentials],
      ['of invalid characters', 'Bearer tök€n', errorBodies.malformedCredentials],
      ['only padding', 'Bearer ==', errorBodies.malformedCredentials],
      ['sent twice', [`Bearer ${TOKEN}`, `Bearer ${TOKEN}`], errorBodies.malformedCredentials],
      [
        'sent with another scheme',
        ['Basic YTpi', `Bearer ${TOKEN}`],
        errorBodies.malformedCredentials,
      ],
    ])('is invalid %s', async (_what, authorization, expected) => {
      const response = await post(authorization);

      expect(response.statusCode).toBe(401);
      expect(response.json()).toEqual(expected);
      expect(response.headers['www-authenticate']).toBe(
        'Bearer realm="plants", error="invalid_token"',
      );
    });

    it.each([
      ['not JSON', '{', 'application/json'],
      ['of a wrong media type', 'plant', 'text/plain'],
      ['of a malformed media type', '{}', '@@@'],
      ['of no media type', '{}', undefined],
      ['empty', '', 'application/json'],
      ['a form', `access_token=${TOKEN}`, 'application/x-www-form-urlencoded'],
      ['a form in parts', `--x\r\n\r\n${TOKEN}\r\n--x--`, 'multipart/form-data; boundary=x'],
    ])('is checked before a body that is %s', async (_what, body, type) => {
      const response = await application.post(body, {
        authorization: undefined,
        'content-type': type,
      });

      expect(response.json()).toEqual(errorBodies.missingCredentials);
    });

    it('is not taken from the query', async () => {
      const response = await application.app.inject({
        method: 'POST',
        url: `/plants?access_token=${TOKEN}`,
        headers: { 'content-type': 'application/json' },
        payload: newPlant(),
      });

      expectAsDeclared(answerOf(response));
      expect(response.json()).toEqual(errorBodies.missingCredentials);
    });

    it('is invalid when only the beginning of its digest is in the list', async () => {
      const digest = createHash('sha256').update('guess').digest('hex');
      const other = await TestApplication.start({
        AUTH_TOKENS: `sha256:${digest.slice(0, 63)}${digest.endsWith('0') ? 1 : 0}`,
      });

      const response = await other.post(newPlant(), { authorization: 'Bearer guess' });

      expect(response.json()).toEqual(errorBodies.invalidToken);
      await other.stop();
    });

    it.each(['access_token=x', 'a&access_token', '%61ccess_token=x', `?&access_token=${TOKEN}`])(
      'is invalid when the query has one too: %s',
      async (query) => {
        const response = await application.app.inject({
          method: 'POST',
          url: `/plants?${query}`,
          headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
          payload: newPlant(),
        });

        expect(response.statusCode).toBe(401);
        expect(response.json()).toEqual(errorBodies.tokenTwice);
      },
    );

    it('is not taken from the body', async () => {
      const response = await post(undefined, `{"id":0,"name":"Fern","access_token":"${TOKEN}"}`);

      expect(response.json()).toEqual(errorBodies.missingCredentials);
    });

    it('is required for every spelling of the path that reaches the operation', async () => {
      for (const url of ['/plants', '/%70lants', '/plants?x', 'http://x/plants', '/plants#x']) {
        const response = await application.app.inject({ method: 'POST', url });
        expectAsDeclared(answerOf(response));
        expect(response.json()).toEqual(errorBodies.missingCredentials);
      }
    });
  },
);

import { randomInt } from 'node:crypto';
import fc from 'fast-check';
import { TestApplication, TOKEN } from '../support/application';
import { errorBodies } from '../support/error-bodies';
import { exchange } from '../support/wire';

const body = '{"id":1,"name":"Fern"}';
const creation = `POST /plants HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKEN}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;

/** Characters of targets; those that separate their parts come often. */
const characters = fc.oneof(
  fc.constantFrom('/', '?', '*', '%61', '%2f', '%zz'),
  fc.string({ unit: fc.constantFrom(...Array.from('/?*:@%#[]()+;.~plantshe0')), maxLength: 3 }),
);
const text = fc.array(characters, { maxLength: 8 }).map((parts) => parts.join(''));
const path = fc.oneof(text, fc.constantFrom('plants', 'health/live', 'metrics', 'docs', ''));

/** Targets in origin form, absolute form, authority form, asterisk form, and in none of them. */
const targets = fc.oneof(
  path.map((rest) => `/${rest}`),
  fc
    .tuple(
      fc.constantFrom('http', 'https', 'HTTP', 'ftp'),
      fc.constantFrom('x', 'x:80', 'u:p@x', ''),
      path,
    )
    .map(([scheme, authority, rest]) => `${scheme}://${authority}${rest}`),
  fc.tuple(fc.constantFrom('x:443', '[::1]:80'), text).map((parts) => parts.join('')),
  path.map((rest) => `*${rest}`),
  path.map((rest) => `h${rest}`),
);
const methods = fc.constantFrom('GET', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'HEAD');

/** What follows a target in the head of a request, and what that is answered, whatever the target. */
const faults = fc.constantFrom(
  { rest: ' HTTP/1.1\r\n\r\n', answer: errorBodies.missingHost },
  { rest: ' HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n', answer: errorBodies.missingHost },
  { rest: ' HTTP/1.1\r\nHost: a b\r\n\r\n', answer: errorBodies.malformedHost },
  {
    rest: ' HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n',
    answer: errorBodies.unknownCoding,
  },
  {
    rest: ' HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    answer: errorBodies.codingOfOldVersion,
  },
);

/** `npm run test:faults` plays more. */
const CONVERSATIONS = Number(process.env.CONVERSATIONS ?? 300);
/** Milliseconds: for many, ten times what each takes on a machine that does nothing else. */
const LIMIT = 120_000 + 20 * CONVERSATIONS;

/** Node's parser refuses some targets itself. */
const byParser = errorBodies.malformedRequest;

describe.each([
  ['without CORS', {}],
  ['with CORS', { CORS_ORIGINS: 'https://app.example.org' }],
])('any target, %s', (_name, environment) => {
  const seed = Number(process.env.SEED ?? randomInt(2 ** 31));
  const application = TestApplication.use(environment);

  it(
    `escapes no rule of the head, and nothing behind is processed (SEED=${seed})`,
    async () => {
      const property = fc.asyncProperty(methods, targets, faults, async (method, target, fault) => {
        const answers = await exchange(
          application.url,
          `${method} ${target}${fault.rest}${creation}`,
        );

        expect(answers).toHaveLength(1);
        const [{ status, headers, body: answer } = { status: 0, headers: {}, body: null }] =
          answers;
        expect(headers).toMatchObject({ connection: 'close', 'x-content-type-options': 'nosniff' });
        const isByParser = headers['x-request-id'] === undefined;
        const expected = isByParser ? byParser : fault.answer;
        expect([status, answer]).toEqual([
          Math.floor(expected.error / 100),
          // The parser does not know the method.
          method === 'HEAD' && !isByParser ? null : expected,
        ]);
      });

      await fc.assert(property, { seed, numRuns: CONVERSATIONS });

      expect(application.store.plants()).toEqual([]);
    },
    LIMIT,
  );
});

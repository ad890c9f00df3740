import { randomInt } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { TestApplication } from '../support/application';
import { errorBodies } from '../support/error-bodies';
import { createRequest } from '../support/load';
import { exchange } from '../support/wire';

/** The characters of targets. Those that separate parts are frequent. */
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

/** The text after the target of a request, and the response to it for any target. */
const faults = fc.constantFrom(
  { rest: ' HTTP/1.1\r\n\r\n', response: errorBodies.missingHost },
  { rest: ' HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n', response: errorBodies.missingHost },
  { rest: ' HTTP/1.1\r\nHost: a b\r\n\r\n', response: errorBodies.malformedHost },
  {
    rest: ' HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n',
    response: errorBodies.unknownCoding,
  },
  {
    rest: ' HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    response: errorBodies.codingOfOldVersion,
  },
);

/** `npm run test:faults` sets a larger number. */
const CONVERSATIONS = Number(process.env.CONVERSATIONS ?? 300);

/** The parser of Node.js rejects some targets itself. */
const byParser = errorBodies.malformedRequest;

describe.each([
  ['without CORS', {}],
  ['with CORS', { CORS_ORIGINS: 'https://app.example.org' }],
])('random request targets, %s', (_name, environment) => {
  const seed = Number(process.env.SEED ?? randomInt(2 ** 31));
  const application = TestApplication.use(environment);

  it(`never bypass header validation, and nothing after a rejection is processed (SEED=${seed})`, async () => {
    const property = fc.asyncProperty(methods, targets, faults, async (method, target, fault) => {
      const request = `${method} ${target}${fault.rest}${createRequest(1).text}`;

      const responses = await exchange(application.url, request);

      const isByParser = isDeepStrictEqual(responses[0]?.body, byParser);
      const expected = isByParser ? byParser : fault.response;
      const status = Math.floor(expected.error / 100);
      // The parser does not know the method.
      const body = method === 'HEAD' && !isByParser ? null : expected;
      const headers: unknown = expect.objectContaining({
        connection: 'close',
        'x-content-type-options': 'nosniff',
      });
      expect(responses).toEqual([{ status, headers, body }]);
    });

    await fc.assert(property, { seed, numRuns: CONVERSATIONS });

    expect(application.store.plants()).toEqual([]);
  });
});

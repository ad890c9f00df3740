/*
 * Sends requests with targets of the four forms of RFC 9112 section 3.2, valid and malformed, with valid and malformed
 * headers, to a process of the service. Whatever is wrong with a request, its response and its log line are those of
 * every other request.
 */
import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { TOKEN } from '../support/application';
import { errorBodies as errors } from '../support/error-bodies';
import { shareServiceHome, type ServiceProcess } from '../support/service-process';
import { until } from '../support/until';
import { exchange, type WireResponse } from '../support/wire';

const PATHS = [
  '/plants',
  '/plants/',
  '/pl%61nts',
  '/plants?a=/b%zz',
  '/plants#f',
  '//plants',
  '/%',
  '/%zz',
  '/%ff',
  '/%25',
  '/health/live',
  '/:a(',
  '/',
];
const SCHEMES = ['http://', 'HTTPS://', 'ftp://', 'http:'];
const AUTHORITIES = ['x', 'x:80', 'x:99999', '[::1]', '[zz]', '', 'a@x', '%zz'];

const originForm = fc.constantFrom(...PATHS);
const absoluteForm = fc
  .tuple(
    fc.constantFrom(...SCHEMES),
    fc.constantFrom(...AUTHORITIES),
    fc.constantFrom('', '?a/b', '#f', '/plants#f', ...PATHS),
  )
  .map((parts) => parts.join(''));
const authorityForm = fc.constantFrom('x:443', 'x');
const asteriskForm = fc.constantFrom('*', '*plants', '*/plants', '*%zz');
const target = fc.oneof(originForm, absoluteForm, authorityForm, asteriskForm);
const method = fc.constantFrom('POST', 'GET', 'PUT', 'OPTIONS', 'PROPFIND');

/** Headers after the request line. Some have no Host, or more than one. */
const headers = fc.subarray([
  'Host: x',
  'Host: y',
  'Expect: x',
  'Transfer-Encoding: gzip, chunked',
  'Content-Length: 0',
  'Upgrade: h2c',
  'X : a',
]);

/** A create request that must not be processed behind a rejected request. */
const BEHIND = `POST /plants HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKEN}\r\nContent-Type: application/json\r\nContent-Length: 22\r\n\r\n{"id":1,"name":"Fern"}`;

const home = shareServiceHome();
let service: ServiceProcess;
beforeAll(async () => {
  service = await home.start({ ACCESS_LOG: 'true' });
});

const send = async (line: string, fields: readonly string[], rest = ''): Promise<WireResponse[]> =>
  exchange(await service.url(), `${[line, ...fields].join('\r\n')}\r\n\r\n${rest}`);

/** The log lines about the request with an id. */
const linesAbout = (id: string | undefined) =>
  service.lines.filter(({ requestId }) => requestId === id);

const isErrorBody = (body: unknown): boolean =>
  /^{"error":\d{5},"message":".+"}$/.test(JSON.stringify(body));

/**
 * The targets that have a route: a slash, or a URL whose empty path counts as one, then the path and what follows it.
 * Everything else is an error.
 */
const ROUTED = /^(?:\/|https?:\/\/[^/?#]+\/?)(?:pl(?:a|%61)nts|health\/live)?(?:[?#].*)?$/i;

/** Returns what is wrong with the response to a request. */
function findFaults(aTarget: string, { status, headers, body }: WireResponse): string[] {
  const isError = status >= 400;
  const rules = {
    'an id': /^[\da-f-]{36}$/.test(headers['x-request-id'] ?? ''),
    close: headers.connection === 'close',
    'an error without a route': isError || ROUTED.test(aTarget),
    'security headers': !isError || headers['x-content-type-options'] === 'nosniff',
    'an Error body': !isError || isErrorBody(body),
  };
  return Object.entries(rules)
    .filter(([, isKept]) => !isKept)
    .map(([rule]) => rule);
}

it('every target gets a response with the Error body or of its route, a request id and a log line', async () => {
  const property = fc.asyncProperty(method, target, headers, async (aMethod, aTarget, fields) => {
    const line = `${aMethod} ${aTarget} HTTP/1.1`;
    const more = [`X-Request-Id: ${randomUUID()}`, 'Connection: close'];

    const responses = await send(line, [...fields, ...more], BEHIND);

    expect(responses).toHaveLength(1);
    const [response] = responses as [WireResponse];
    expect(findFaults(aTarget, response)).toEqual([]);
    const id = response.headers['x-request-id'];
    await until(() => linesAbout(id).length > 0);
    expect(linesAbout(id)).toMatchObject([{ ip: '127.0.0.1', status: response.status }]);
  });
  await fc.assert(property, {
    numRuns: 500,
    examples: [
      ['GET', 'http://x?a/b', []],
      ['GET', 'http://x#a/b', ['Host: x']],
      ['GET', 'http://x', ['Host: x']],
    ],
  });
  expect(home.plants()).toEqual([]);
});

it.each([
  ['POST http://[zz]/plants', errors.malformedTarget],
  ['POST http:///plants', errors.malformedTarget],
  ['POST http://x:99999/plants', errors.malformedTarget],
  ['POST http://x/plants#f', errors.malformedTarget],
  ['PROPFIND /%zz', errors.malformedTarget],
  ['POST *%zz', errors.malformedTarget],
  ['POST *plants', errors.malformedTarget],
  ['POST ftp://x/plants', errors.malformedTarget],
  ['POST /plants', errors.missingCredentials],
  ['POST http://x?a/b', errors.methodNotAllowed],
  ['POST http://x', errors.methodNotAllowed],
  ['GET /plants#f', errors.methodNotAllowed],
  ['GET /%25', errors.notFound],
  ['OPTIONS *', errors.notFound],
])('%s gets the error %j, and is counted', async (line, body) => {
  const metric = new RegExp(`^plant_store_errors_total{error="${body.error}"} (\\d+)$`, 'm');
  const count = async () => {
    const response = await fetch(new URL('/metrics', await service.url()), {
      headers: { authorization: `Bearer ${TOKEN}` },
    });
    return Number(metric.exec(await response.text())?.[1]);
  };
  const before = await count();

  const responses = await send(`${line} HTTP/1.1`, ['Host: x', 'Connection: close']);

  expect(responses).toMatchObject([{ status: Math.floor(body.error / 100), body }]);
  expect(await count()).toBe(before + 1);
});

it('a target that cannot be parsed gets the error of its headers', async () => {
  const responses = await send('POST http://[zz]/plants HTTP/1.1', [], BEHIND);

  expect(responses).toMatchObject([{ status: 400, body: errors.missingHost }]);
  expect(home.plants()).toEqual([]);
});

import { gzipSync } from 'node:zlib';
import type { Headers } from '../../support/application';
import { errorBodies } from '../../support/error-bodies';

const LIMIT = 2 ** 20;
const FERN = { name: 'Fern' };
const fern = (id: number | string) => `{"id":${id},"name":"Fern"}`;
const NOT_JSON = { error: 40001, message: expect.stringMatching(/^Not JSON: /) as string };
const token = (value: Headers[string]) => ({ authorization: value });
const type = (value: Headers[string]) => ({ 'content-type': value });
const key = (value: string) => ({ 'idempotency-key': value });
/** The body is sent without Content-Length. */
const CHUNKED = { 'transfer-encoding': 'chunked' };

/**
 * A request to the route of the module, and the response body that the contract specifies. The headers are added
 * to a valid token and media type or replace them: `undefined` omits a header, an array repeats it.
 */
type ContractCase = readonly [body: string | Buffer, expectedBody: object, headers?: Headers];

/** The tests send these requests in this order. */
export const contractCases: readonly ContractCase[] = [
  // Bytes that the parsers of a host would change or reject.
  [fern('9007199254740993'), FERN],
  [fern('9007199254740992'), FERN],
  ['{"id":1,"name":" 🌿\\t ","tag":"e\u0301"}', { name: ' 🌿\t ', tag: 'e\u0301' }],
  ['{"__proto__":{"tag":"x"},"id":2,"name":"Fern","more":[{"id":1}]}', FERN],
  ['', errorBodies.empty],
  ['{', NOT_JSON],
  [`\ufeff${fern(3)}`, NOT_JSON],
  [Buffer.from([0x7b, 0xff, 0x7d]), errorBodies.notUtf8],
  ['7', errorBodies.notAnObject],
  // Errors to which the filter or the pipe of a host would respond.
  [fern(1), errorBodies.idTaken],
  [fern('9223372036854775808'), errorBodies.idNotInt64],
  // Sizes below and above the limit of the module. All exceed the limit of the host.
  [fern(3).padEnd(LIMIT), FERN],
  [fern(4).padEnd(100_000), FERN, CHUNKED],
  [fern(5).padEnd(LIMIT + 1), errorBodies.tooLarge],
  [fern(5).padEnd(LIMIT + 1), errorBodies.tooLarge, CHUNKED],
  // Media types that a host parses in a different way, or not at all.
  [fern(5), errorBodies.mediaType, type(undefined)],
  [fern(5), errorBodies.mediaType, type('text/plain')],
  [fern(5), errorBodies.mediaType, type('application/json; charset=latin1')],
  [fern(5), errorBodies.mediaType, type(['application/json', 'application/json'])],
  [fern(5), errorBodies.mediaType, type(';;')],
  [fern(6), FERN, type('APPLICATION/JSON; Charset="UTF-8"')],
  [gzipSync(fern(5)), errorBodies.contentEncoding, { 'content-encoding': 'gzip' }],
  // The token is checked before the body.
  [fern(5), errorBodies.missingCredentials, { ...token(undefined), ...type(';;') }],
  ['{', errorBodies.invalidToken, token('Bearer x')],
  [fern(5).padEnd(3 * LIMIT), errorBodies.invalidToken, token('Bearer x')],
  [fern(5), errorBodies.malformedCredentials, token(['Bearer host-token', 'Bearer host-token'])],
  [fern(5), FERN, key('k')],
  [fern(5), FERN, key('"k"')],
  ['{"id":5,"name":"Moss"}', errorBodies.keyReused, key('k')],
];

const status = (value: number) => ({ 'x-status': String(value) });
const hostError = (value: number) => ({ error: value * 100, message: 'of the host' });

/** Requests that guards, interceptors and middleware of the host reject, delay or read. */
export const hookCases: readonly ContractCase[] = [
  [fern(7), errorBodies.forbidden, { 'x-robot': 'yes' }],
  [fern(7), errorBodies.invalidToken, status(401)],
  [fern(7), errorBodies.outcomeUnknown, status(408)],
  [fern(7), errorBodies.tooManyRequests, status(429)],
  [fern(7), errorBodies.unavailable, status(503)],
  ...[400, 402, 405, 409, 410, 413, 415, 418, 422].map((each): ContractCase => [
    fern(7),
    hostError(each),
    status(each),
  ]),
  [fern(7), { ...errorBodies.internal, error: 502 * 100 }, status(502)],
  [fern(7), errorBodies.outcomeUnknown, { 'x-delay': 'yes' }],
  ['', errorBodies.empty, { 'x-touch': 'end' }],
  ['', errorBodies.empty, { 'x-touch': 'end', ...CHUNKED }],
  [fern(8), FERN, { 'x-touch': 'pause' }],
];

const DECODE = { 'x-replace': 'gunzip' };
const UNDECODABLE = { ...errorBodies.empty, message: 'The body cannot be decoded.' };

/** Requests whose body a hook of Fastify replaces. */
export const replacementCases: readonly ContractCase[] = [
  [fern(9), FERN, { 'x-replace': 'pipe' }],
  [gzipSync(fern(10)), FERN, DECODE],
  [gzipSync(fern(11)).subarray(0, -9), UNDECODABLE, DECODE],
  [fern(11), UNDECODABLE, DECODE],
];

/** Requests to `POST /trees`, a route of the host. They are JSON unless the headers specify another type. */
export const treeCases: readonly [body: string, headers?: Headers][] = [
  ['{"id":9007199254740993,"name":" Oak "}'],
  ['{'],
  [''],
  [`{"name":"${'x'.repeat(400)}"}`],
  [`{"name":"${'x'.repeat(400)}"}`, CHUNKED],
  ['{"name":"Oak"}', CHUNKED],
  ['{"a":"b"}', type('application/json; charset=latin1')],
  ['a=b', type('application/x-www-form-urlencoded')],
  [' text ', type('text/plain')],
  ['x', type(';;')],
  ['not compressed', { 'content-encoding': 'gzip' }],
  ['', type(undefined)],
];

/** Other requests to which the host responds. */
export const otherTargets = [
  'POST /api/v2/plants',
  'GET /api/v1/plants',
  'GET /api/v1/trees/number/%207%20',
  'GET /api/v1/trees/guarded',
  'GET /api/v1/trees/broken',
  'GET /api/v1/nothing',
  'HEAD /api/v1/trees/number/7',
  'OPTIONS /api/v1/trees',
  'DELETE /api/v1/trees',
  'GET /%zz',
];

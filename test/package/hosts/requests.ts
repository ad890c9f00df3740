import type { Headers } from '../../support/application';
import { errorBodies } from '../../support/error-bodies';

const FERN = { name: 'Fern' };
const fern = (id: number | string) => `{"id":${id},"name":"Fern"}`;
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
  [fern('9007199254740993'), FERN],
  [fern('9007199254740992'), FERN],
  ['{"id":1,"name":" 🌿\\t ","tag":"e\u0301"}', { name: ' 🌿\t ', tag: 'e\u0301' }],
  ['{"id":2,"name":"Fern","more":[{"id":1}]}', FERN],
  [fern(4), FERN, CHUNKED],
  [fern(1), errorBodies.idTaken],
  [fern('9223372036854775808'), errorBodies.idNotInt64],
  ['[]', errorBodies.notAnObject],
  [fern(5), errorBodies.mediaType, type('text/plain')],
  [fern(5), errorBodies.mediaType, type(['application/json', 'application/json'])],
  [fern(6), FERN, type('APPLICATION/JSON; Charset="UTF-8"')],
  [fern(5), errorBodies.missingCredentials, token(undefined)],
  [fern(5), errorBodies.invalidToken, token('Bearer x')],
  [fern(5), errorBodies.malformedCredentials, token(['Bearer host-token', 'Bearer host-token'])],
  [fern(5), FERN, key('k')],
  [fern(5), FERN, key('"k"')],
  ['{"id":5,"name":"Moss"}', errorBodies.keyReused, key('k')],
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

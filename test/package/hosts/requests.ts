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
/** Without a length. */
const CHUNKED = { 'transfer-encoding': 'chunked' };

/**
 * Requests to the route of the module, in this order, and the answers of the contract. The header fields
 * are beside or instead of a good token and media type; `undefined` leaves one out, a list sends it twice.
 */
export const contractCases: readonly [body: string | Buffer, answer: object, headers?: Headers][] =
  [
    [fern(-1), FERN],
    [fern('1E6'), FERN],
    [fern('9007199254740993'), FERN],
    [fern('9223372036854775807'), FERN],
    [fern(1_000_000), errorBodies.idTaken],
    [fern('9007199254740993.0'), errorBodies.idTaken],
    [fern('9223372036854775808'), errorBodies.idNotInt64],
    [fern('1.5'), errorBodies.idNotInt64],
    [fern('"7"'), errorBodies.idNotNumber],
    [fern('null'), errorBodies.idNotNumber],
    ['', errorBodies.empty],
    [' ', NOT_JSON],
    ['{', NOT_JSON],
    [`\ufeff${fern(700)}`, NOT_JSON],
    [Buffer.from([0x7b, 0xff, 0x7d]), errorBodies.notUtf8],
    ['[]', errorBodies.notAnObject],
    ['"x"', errorBodies.notAnObject],
    ['7', errorBodies.notAnObject],
    ['null', errorBodies.notAnObject],
    ['{}', { error: 40002, message: 'Not a NewPlant: id is required; name is required.' }],
    ['{"id":702,"name":"Fern","tag":null}', errorBodies.tagNotString],
    ['{"id":800,"name":" Fern\\t ","tag":""}', { name: ' Fern\t ', tag: '' }],
    ['{"id":801,"name":"🌿","tag":"e\u0301"}', { name: '🌿', tag: 'e\u0301' }],
    ['{"id":1,"id":802,"name":"Moss","name":"Fern"}', FERN],
    ['{"__proto__":{"tag":"x"},"id":803,"name":"Fern","more":[{"id":1}]}', FERN],
    [`{"id":804,"more":${'['.repeat(5000)}${']'.repeat(5000)},"name":"Fern"}`, FERN],
    [fern(805).padEnd(1000), FERN],
    [fern(806).padEnd(LIMIT), FERN],
    [fern(900).padEnd(LIMIT + 1), errorBodies.tooLarge],
    [fern(900).padEnd(5 * LIMIT), errorBodies.tooLarge],
    [fern(900).padEnd(LIMIT + 1), errorBodies.tooLarge, CHUNKED],
    [fern(901).padEnd(100_000), FERN, CHUNKED],
    [fern(902), errorBodies.mediaType, type(undefined)],
    [fern(902), errorBodies.mediaType, type('text/plain')],
    [fern(902), errorBodies.mediaType, type('application/json; charset=latin1')],
    [fern(902), errorBodies.mediaType, type('application/x-www-form-urlencoded')],
    [fern(902), errorBodies.mediaType, type('application/json, text/json')],
    [fern(902), errorBodies.mediaType, type(['application/json', 'application/json'])],
    [fern(902), errorBodies.mediaType, type(';;')],
    [gzipSync(fern(903)), errorBodies.contentEncoding, { 'content-encoding': 'gzip' }],
    [fern(904), FERN, { 'content-encoding': 'identity' }],
    [fern(905), FERN, type('APPLICATION/JSON; Charset="UTF-8"')],
    [fern(906), errorBodies.missingCredentials, { ...token(undefined), ...type(';;') }],
    [fern(906), errorBodies.missingCredentials, token('Basic YTpi')],
    ['{', errorBodies.invalidToken, token('Bearer x')],
    [fern(906).padEnd(3 * LIMIT), errorBodies.invalidToken, token('Bearer x')],
    [
      fern(906),
      errorBodies.malformedCredentials,
      token(['Bearer host-token', 'Bearer host-token']),
    ],
    [fern(907), FERN, key('k')],
    [fern(907), FERN, key('"k"')],
    ['{"id":907,"name":"Moss"}', errorBodies.keyReused, key('k')],
    [fern(908), errorBodies.keyMalformed, key('a b')],
  ];

/** Requests to `POST /trees`, a route of the host, with JSON unless the header fields have another type. */
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

/** Other requests that the host answers. */
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

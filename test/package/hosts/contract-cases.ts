import { gzipSync } from 'node:zlib';

/** A request to `POST /plants`, and the contract's answer to it. The cases are sent in this order. */
export interface ContractCase {
  readonly name: string;
  readonly body: string | Buffer;
  /** Instead of a good token and media type; `undefined` leaves a field out, a list sends it twice. */
  readonly headers?: Readonly<Record<string, string | string[] | undefined>>;
  /** Sent in chunks, without a length. */
  readonly isChunked?: boolean;
  /** The number of the Error body, or the body of a success. */
  readonly expected: number | object;
}

const FERN = { name: 'Fern' };
const LIMIT = 2 ** 20;

const plant = (id: string): string => `{"id":${id},"name":"Fern"}`;
const padded = (id: number, size: number): string => {
  const start = `{"id":${id},"name":"Fern","note":"`;
  return `${start}${'x'.repeat(size - start.length - 2)}"}`;
};

const ids: ContractCase[] = [
  ...['0', '-1', '1.0', '1E6', '12.50e1', '9007199254740992', '9007199254740993'],
  ...['-9007199254740993', '9223372036854775807', '-9223372036854775808'],
  ...['9.223372036854775806e18', '18014398509481985'],
].map((id) => ({ name: `the id ${id}`, body: plant(id), expected: FERN }));

const taken: ContractCase[] = ['-0', '0E999999999', '1', '1000000', '9007199254740993.0'].map(
  (id) => ({ name: `the id ${id}, which is taken`, body: plant(id), expected: 40003 }),
);

const wrongIds: ContractCase[] = [
  ...['9223372036854775808', '-9223372036854775809', '1.5', '1.000000000000000005', '1E-999'],
  ...['1E400', '"7"', 'true', 'null', '[1]', '{"id":1}'],
].map((id) => ({ name: `the id ${id}`, body: plant(id), expected: 40002 }));

const malformed: ContractCase[] = [
  ...['', ' ', '{', '{"id":700,"name":"Fern"', "{'id':700}", '{"id":0700,"name":"Fern"}'],
  ...['{"id":700,"name":"a\tb"}', '{"id":700,"name":"Fern",}', '{"id":NaN,"name":"Fern"}'],
  ...['\ufeff{"id":700,"name":"Fern"}', 'undefined', '{"id":700,"name":"Fern"}}'],
].map((body) => ({ name: `the body ${JSON.stringify(body)}`, body, expected: 40001 }));

const notUtf8: ContractCase[] = [
  Buffer.from('{"id":701,"name":"\xe9"}', 'latin1'),
  Buffer.from(plant('701'), 'utf16le'),
  Buffer.from([0x7b, 0xff, 0x7d]),
].map((body) => ({ name: `the bytes ${body.toString('hex')}`, body, expected: 40001 }));

const wrongShapes: ContractCase[] = [
  ...['[]', '"x"', '7', 'null', 'true', '{}', '{"id":702}', '{"name":"Fern"}'],
  ...['{"id":702,"name":null}', '{"id":702,"name":"Fern","tag":null}', '{"id":702,"name":["a"]}'],
  ...['{"id":702,"name":"\\ud800"}', '{"id":702,"name":"\\u0000"}'],
].map((body) => ({ name: `the body ${body}`, body, expected: 40002 }));

const accepted: ContractCase[] = (
  [
    ['{"id":800,"name":" Fern\\t ","tag":""}', { name: ' Fern\t ', tag: '' }],
    ['{"id":1,"id":801,"name":"Moss","name":"Fern"}', FERN],
    ['{"id":802,"name":"\ud83c\udf3f","tag":"e\u0301"}', { name: '\ud83c\udf3f', tag: 'e\u0301' }],
    ['{"__proto__":{"tag":"x"},"id":803,"name":"Fern","more":[{"id":1}]}', FERN],
    [`{"id":804,"more":${'['.repeat(5000)}${']'.repeat(5000)},"name":"Fern"}`, FERN],
    [padded(805, 1000), FERN],
    [padded(806, LIMIT), FERN],
  ] as const
).map(([body, expected]) => ({ name: `the body ${body.slice(0, 40)}`, body, expected }));

const sizes = [
  { name: 'a body of one byte too much', body: padded(900, LIMIT + 1), expected: 40005 },
  {
    name: 'one byte too much, chunked',
    body: padded(900, LIMIT + 1),
    isChunked: true,
    expected: 40005,
  },
  { name: 'a body of 5 MiB', body: padded(900, 5 * LIMIT), expected: 40005 },
  { name: 'a chunked body', body: padded(901, 100_000), isChunked: true, expected: FERN },
];

const type = (value: string | string[] | undefined) => ({ 'content-type': value });
const mediaTypes = [
  ...[undefined, 'text/plain', 'text/json', 'application/json; charset=latin1', ';;'],
  ...['application/json; x', 'application/x-www-form-urlencoded', 'application/json, text/json'],
  ...['multipart/form-data; boundary=x', ['application/json', 'application/json']],
].map((value) => {
  const name = `the media type ${JSON.stringify(value)}`;
  return { name, body: plant('902'), headers: type(value), expected: 40004 };
});

const token = (value: string | string[] | undefined) => ({ authorization: value });
const key = (value: string) => ({ 'idempotency-key': value });
const fields: ContractCase[] = (
  [
    ['a compressed body', gzipSync(plant('903')), { 'content-encoding': 'gzip' }, 40004],
    ['the coding identity', plant('904'), { 'content-encoding': 'identity' }, FERN],
    ['a quoted charset', plant('905'), type('APPLICATION/JSON; Charset="UTF-8"'), FERN],
    ['no token', plant('906'), token(undefined), 40100],
    ['another scheme', plant('906'), token('Basic YTpi'), 40100],
    ['a wrong token', plant('906'), token('Bearer x'), 40101],
    ['two tokens', plant('906'), token(['Bearer host-token', 'Bearer host-token']), 40101],
    ['a wrong token and no JSON', '{', token('Bearer x'), 40101],
    ['a wrong token and too much', padded(906, 3 * LIMIT), token('Bearer x'), 40101],
    ['no token, a malformed type', plant('906'), { ...token(undefined), ...type(';;') }, 40100],
    ['a key', plant('907'), key('k'), FERN],
    ['the same key again', plant('907'), key('"k"'), FERN],
    ['the key with other content', '{"id":907,"name":"Moss"}', key('k'), 40007],
    ['a malformed key', plant('908'), key('a b'), 40006],
  ] as const
).map(([name, body, headers, expected]) => ({ name, body, headers, expected }));

/** What any host answers at the route of the module. */
export const contractCases: readonly ContractCase[] = [
  ...[ids, taken, wrongIds, malformed, notUtf8, wrongShapes, accepted, sizes, mediaTypes, fields],
].flat();

/** The ids that are stored after all cases, in order. */
export const storedIds: readonly bigint[] = [
  ...[-9_223_372_036_854_775_808n, -9_007_199_254_740_993n, -1n, 0n, 1n, 125n],
  ...[800n, 801n, 802n, 803n, 804n, 805n, 806n, 901n, 904n, 905n, 907n, 1_000_000n],
  ...[9_007_199_254_740_992n, 9_007_199_254_740_993n, 18_014_398_509_481_985n],
  ...[9_223_372_036_854_775_806n, 9_223_372_036_854_775_807n],
];

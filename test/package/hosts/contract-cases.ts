import { gzipSync } from 'node:zlib';

/** A request to `POST /plants`, and the contract's answer to it. The cases are sent in this order. */
interface ContractCase {
  readonly body: string | Buffer;
  /** The number of the Error body, or the body of a success. */
  readonly expected: number | object;
  /** Instead of a good token and media type; `undefined` leaves a field out, a list sends it twice. */
  readonly headers?: Readonly<Record<string, string | string[] | undefined>>;
  /** Sent in chunks, without a length. */
  readonly isChunked?: boolean;
}

const FERN = { name: 'Fern' };
const LIMIT = 2 ** 20;

const plant = (id: number | string) => `{"id":${id},"name":"Fern"}`;
const padded = (id: number, size: number) => plant(id).padEnd(size);
const cases = (expected: number | object, bodies: (string | Buffer)[]): ContractCase[] =>
  bodies.map((body) => ({ body, expected }));

const ids = [
  ...cases(FERN, ['-1', '1E6', '9007199254740993', '9223372036854775807'].map(plant)),
  ...cases(40003, ['1000000', '9007199254740993.0'].map(plant)),
  ...cases(40002, ['9223372036854775808', '1.5', '"7"', 'null'].map(plant)),
];

const bodies = [
  ...cases(40001, ['', ' ', '{', `\ufeff${plant(700)}`, Buffer.from([0x7b, 0xff, 0x7d])]),
  ...cases(40002, ['[]', '"x"', '7', 'null', '{}', '{"id":702,"name":"Fern","tag":null}']),
  ...cases({ name: ' Fern\t ', tag: '' }, ['{"id":800,"name":" Fern\\t ","tag":""}']),
  ...cases({ name: '🌿', tag: 'e\u0301' }, ['{"id":801,"name":"🌿","tag":"e\u0301"}']),
  // prettier-ignore
  ...cases(FERN, [
    '{"id":1,"id":802,"name":"Moss","name":"Fern"}',
    '{"__proto__":{"tag":"x"},"id":803,"name":"Fern","more":[{"id":1}]}',
    `{"id":804,"more":${'['.repeat(5000)}${']'.repeat(5000)},"name":"Fern"}`,
    padded(805, 1000), padded(806, LIMIT),
  ]),
  ...cases(40005, [padded(900, LIMIT + 1), padded(900, 5 * LIMIT)]),
  { body: padded(900, LIMIT + 1), isChunked: true, expected: 40005 },
  { body: padded(901, 100_000), isChunked: true, expected: FERN },
];

const type = (value: string | string[] | undefined) => ({ 'content-type': value });
const token = (value: string | string[] | undefined) => ({ authorization: value });
const key = (value: string) => ({ 'idempotency-key': value });
const fields = (
  [
    [plant(902), type(undefined), 40004],
    [plant(902), type('text/plain'), 40004],
    [plant(902), type('application/json; charset=latin1'), 40004],
    [plant(902), type('application/x-www-form-urlencoded'), 40004],
    [plant(902), type('application/json, text/json'), 40004],
    [plant(902), type(['application/json', 'application/json']), 40004],
    [plant(902), type(';;'), 40004],
    [gzipSync(plant(903)), { 'content-encoding': 'gzip' }, 40004],
    [plant(904), { 'content-encoding': 'identity' }, FERN],
    [plant(905), type('APPLICATION/JSON; Charset="UTF-8"'), FERN],
    [plant(906), { ...token(undefined), ...type(';;') }, 40100],
    [plant(906), token('Basic YTpi'), 40100],
    ['{', token('Bearer x'), 40101],
    [padded(906, 3 * LIMIT), token('Bearer x'), 40101],
    [plant(906), token(['Bearer host-token', 'Bearer host-token']), 40101],
    [plant(907), key('k'), FERN],
    [plant(907), key('"k"'), FERN],
    ['{"id":907,"name":"Moss"}', key('k'), 40007],
    [plant(908), key('a b'), 40006],
  ] as const
).map(([body, headers, expected]) => ({ body, headers, expected }));

/** What any host answers at the route of the module. */
export const contractCases: readonly ContractCase[] = [...ids, ...bodies, ...fields];

/** The ids that are stored after all cases, in order. */
// prettier-ignore
export const storedIds: readonly bigint[] = [
  -1n, 800n, 801n, 802n, 803n, 804n, 805n, 806n, 901n, 904n, 905n, 907n, 1_000_000n,
  9_007_199_254_740_993n, 9_223_372_036_854_775_807n,
];

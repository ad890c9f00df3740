import { Readable } from 'node:stream';
import { PlantsImport } from './import-plants';
import {
  InMemoryPlantsRepository,
  type Insertion,
  OutcomeUnknownError,
  type Plant,
  PlantStoreError,
  UnavailableError,
} from '../plants';

const LIMIT = 300_000;

/** Imports a file, and returns the counts, in their order, and what was reported. */
async function imported(
  file: string | Buffer,
  repository = new InMemoryPlantsRepository(),
): Promise<[counts: number[], report: string[]]> {
  const report: string[] = [];
  const { signal } = new AbortController();
  const plants = new PlantsImport(repository, LIMIT, signal, (line) => report.push(line));
  await Readable.from(plants.run(Readable.from([Buffer.from(file)]))).toArray();
  return [Object.values(plants.counts), report];
}

/** A store that fails at the first insertions, before or after it stores the plant. */
class FailingRepository extends InMemoryPlantsRepository {
  constructor(
    private readonly failures: PlantStoreError[],
    private readonly isStored = false,
  ) {
    super();
  }

  override async insert(plant: Plant): Promise<Insertion> {
    const failure = this.failures.shift();
    if (failure === undefined) return super.insert(plant);
    if (this.isStored) await super.insert(plant);
    throw failure;
  }
}

const RANGE = 'an integer from -9223372036854775808 to 9223372036854775807';

it.each([
  ['an id beyond 2^53', '{"id":9007199254740993,"name":""}', { id: 9007199254740993n, name: '' }],
  ['other members', '{"name":"x","id":1E2,"tag":"","y":[{}]}', { id: 100n, name: 'x', tag: '' }],
  [
    'a member 100,000 levels deep',
    `{"id":1,"name":"x","y":${'['.repeat(1e5)}${']'.repeat(1e5)}}`,
    { id: 1n, name: 'x' },
  ],
])('a line with %s is stored exactly', async (_what, line, expected) => {
  const repository = new InMemoryPlantsRepository();

  await imported(line, repository);

  expect(await repository.page(undefined, 9)).toEqual([expected]);
});

it.each([
  ['an id in a string', '{"id":"7","name":"x"}', `a NewPlant: id must be a JSON number, ${RANGE}.`],
  ['two faults', '{"id":1.5}', `a NewPlant: id must be ${RANGE}; name is required.`],
  ['a tag that is null', '{"id":1,"name":"x","tag":null}', 'a NewPlant: tag must be a string.'],
  ['a list', '[1]', 'a NewPlant: it must be a JSON object.'],
  ['one byte', '7', 'a NewPlant: it must be a JSON object.'],
  ['a space', ' ', 'JSON: Unexpected end of JSON input'],
  ['NUL', '{"id":1,\0"name":"x"}', 'JSON: '],
  ['a byte order mark in the middle', '\uFEFF{"id":1,"name":"x"}', 'JSON: '],
  ['other bytes than UTF-8', Buffer.from([0x22, 0xff, 0x22]), 'JSON: it is not UTF-8.'],
  ['100,000 levels that do not end', '['.repeat(1e5), 'JSON: '],
])('a line with %s is refused, and the next is stored', async (_what, line, reason) => {
  const next = Buffer.from('\r\n{"id":2,"name":"y"}');

  const [counts, report] = await imported(
    Buffer.concat([Buffer.from('\n'), Buffer.from(line), next]),
  );

  expect(counts).toEqual([1, 0, 0, 1]);
  expect(report).toEqual([expect.stringContaining(`Line 2: Not ${reason}`)]);
});

it('a line longer than the limit is refused, and one as long is stored', async () => {
  const longest = `{"id":1,"name":"${'x'.repeat(LIMIT - 18)}"}`;

  const [counts, report] = await imported(`${longest}\n${longest} \n{"id":2,"name":"y"}`);

  expect(counts).toEqual([2, 0, 0, 1]);
  expect(report).toEqual([`Line 2: It is longer than ${LIMIT} bytes (BODY_LIMIT).`]);
});

it('of two lines with one id the first is stored, and the second compared with it', async () => {
  const one = '{"id":1,"name":"x"}\n';

  const [counts, report] = await imported(`${one}${one}{"id":1,"name":"x","tag":""}\n7`);

  expect(counts).toEqual([1, 1, 1, 1]);
  expect(report).toEqual([
    'Line 3: A plant with this id exists already, with another name or tag.',
    'Line 4: Not a NewPlant: it must be a JSON object.',
  ]);
});

it('the first twenty lines that are not stored are reported, and all are counted', async () => {
  const [counts, report] = await imported('x\n'.repeat(1234));

  expect(counts).toEqual([0, 0, 0, 1234]);
  expect(report).toHaveLength(21);
  expect(report.at(-2)).toMatch('Line 20: Not JSON: ');
  expect(report.at(-1)).toBe('More lines were not stored.');
});

it('a plant that the store refuses for a moment is stored at another try', async () => {
  const cause = new Error('the disk is away');
  const repository = new FailingRepository([new UnavailableError({ cause })]);

  const [counts, report] = await imported('{"id":1,"name":"x"}\n{"id":2,"name":"x"}', repository);

  expect(counts).toEqual([2, 0, 0, 0]);
  expect(report).toEqual(['Trying again for up to a minute: the disk is away']);
});

it('a plant whose outcome was lost, and that turns out to be stored, is present', async () => {
  const repository = new FailingRepository([new OutcomeUnknownError()], true);

  const [counts] = await imported('{"id":1,"name":"x"}', repository);

  expect(counts).toEqual([0, 1, 0, 0]);
});

it('a plant that the database refuses by a rule of its own is invalid', async () => {
  const cause = new Error('a rule of the table');
  const repository = new FailingRepository([new PlantStoreError('internal', undefined, { cause })]);

  const [counts, report] = await imported('{"id":1,"name":"x"}\n{"id":2,"name":"x"}', repository);

  expect(counts).toEqual([1, 0, 0, 1]);
  expect(report).toEqual(['Line 1: a rule of the table']);
});

import { Readable } from 'node:stream';
import { advanceClock, restoreClock, stopClock } from '../../test/support/clock';
import { PlantsImport } from './import-plants';
import { OutcomeUnknownError, PlantStoreError, UnavailableError } from '../plants/errors/errors';
import { InMemoryPlantsRepository } from '../plants/store/in-memory-plants.repository';

/** Imports a file. Returns the counts, the reported lines and the pauses in milliseconds. */
async function importFile(
  file: string | Buffer,
  repository = new InMemoryPlantsRepository(),
): Promise<[counts: number[], report: string[], pauses: number[]]> {
  const report: string[] = [];
  const pauses: number[] = [];
  const plants = new PlantsImport(
    repository,
    (line) => report.push(line),
    (milliseconds) => Promise.resolve(pauses.push(milliseconds)),
  );
  await plants.run(Readable.from([Buffer.from(file)]));
  return [Object.values(plants.counts), report, pauses];
}

it.each([
  ['a byte order mark in the middle', Buffer.from('\uFEFF{"id":1,"name":"x"}'), 'JSON: '],
  ['bytes that are not UTF-8', Buffer.from([0x22, 0xff, 0x22]), 'JSON: it is not UTF-8.'],
])('PlantsImport rejects a line with %s, and stores the next line', async (_what, line, reason) => {
  const next = Buffer.from('\r\n{"id":2,"name":"y"}');

  const [counts, report] = await importFile(Buffer.concat([Buffer.from('\n'), line, next]));

  expect(counts).toEqual([1, 0, 0, 1]);
  expect(report).toEqual([expect.stringMatching(/^Line 2: Not /)]);
  expect(report[0]).toMatch(reason);
});

it.each([
  [
    'retries and stores a plant when the store was unavailable',
    new UnavailableError({ cause: new Error('the disk is unreachable') }),
    [2, 0, 0, 0],
    ['Retrying for up to a minute: the disk is unreachable'],
  ],
  [
    'counts a plant as present when it was stored without a response',
    new OutcomeUnknownError({ cause: new Error('the response is lost') }),
    [1, 1, 0, 0],
    ['Retrying for up to a minute: the response is lost'],
  ],
  [
    'counts a plant as invalid when the database rejects it',
    new PlantStoreError('internal', undefined, { cause: new Error('a constraint of the table') }),
    [1, 0, 0, 1],
    ['Line 1: a constraint of the table'],
  ],
])('PlantsImport %s', async (_what, failure, ...expected) => {
  const repository = new InMemoryPlantsRepository();
  const insert = repository.insert.bind(repository);
  jest.spyOn(repository, 'insert').mockImplementationOnce(async (plant) => {
    if (failure instanceof OutcomeUnknownError) await insert(plant);
    throw failure;
  });

  const [counts, report] = await importFile('{"id":1,"name":"x"}\n{"id":2,"name":"x"}', repository);

  expect([counts, report]).toEqual(expected);
});

it('PlantsImport splits lines only at line ends, and keeps U+2028 in a string', async () => {
  const repository = new InMemoryPlantsRepository();

  const [counts] = await importFile('\uFEFF{"id":1,"name":"a\u2028b\u0085"}\r\n', repository);

  expect(counts).toEqual([1, 0, 0, 0]);
  expect(await repository.find(1n)).toEqual({ id: 1n, name: 'a\u2028b\u0085' });
});

it('PlantsImport stores the complete lines before a failure of its input', async () => {
  const input = function* () {
    yield '{"id":1,"name":"x"}\n{"id":2,';
    throw new Error('the disk is unreachable');
  };
  const plants = new PlantsImport(new InMemoryPlantsRepository(), jest.fn(), jest.fn());

  await expect(plants.run(Readable.from(input()))).rejects.toThrow(
    'Line 2 cannot be read: the disk is unreachable.',
  );

  expect(Object.values(plants.counts)).toEqual([1, 0, 0, 0]);
});

const MS_PER_PLANT = 2;

it('PlantsImport pauses after each batch of 500 lines for a quarter of the time that the batch took', async () => {
  const repository = new InMemoryPlantsRepository();
  const insert = repository.insert.bind(repository);
  stopClock();
  jest.spyOn(repository, 'insert').mockImplementation((plant) => {
    advanceClock(MS_PER_PLANT);
    return insert(plant);
  });
  const lines = Array.from({ length: 1250 }, (_, id) => `{"id":${id},"name":""}`);

  const [counts, , pauses] = await importFile(lines.join('\n'), repository);

  restoreClock();
  expect(counts).toEqual([1250, 0, 0, 0]);
  expect(pauses).toEqual([250, 250, 125]);
});

import { Readable } from 'node:stream';
import { importLines } from './import.command';
import { OutcomeUnknownError, PlantStoreError, UnavailableError } from '../plants/errors/errors';
import { InMemoryPlantsRepository } from '../plants/store/in-memory-plants.repository';

const cause = new Error('a constraint of the table');

it.each([
  ['retries, and stores a plant when the store was unavailable', new UnavailableError(), [2, 0, 0]],
  [
    'retries, and counts a plant as present when it was stored without a response',
    new OutcomeUnknownError(),
    [1, 1, 0],
  ],
  [
    'reports the line of a plant that the database rejects, and stores the others',
    new PlantStoreError('internal', undefined, { cause }),
    [1, 0, 1],
  ],
])('importLines %s', async (_what, failure, [stored, present, invalid]) => {
  const report = jest.spyOn(console, 'error').mockImplementation();
  const repository = new InMemoryPlantsRepository();
  const insert = repository.insert.bind(repository);
  jest.spyOn(repository, 'insert').mockImplementationOnce(async (plant) => {
    if (failure instanceof OutcomeUnknownError) await insert(plant);
    throw failure;
  });
  const lines = '\uFEFF{"id":1,"name":"x"}\n{"id":2,"name":"x"}';
  const counts = { stored: 0, present: 0, conflicting: 0, invalid: 0 };

  await importLines(Readable.from([Buffer.from(lines)]), repository, counts);

  expect(counts).toEqual({ stored, present, conflicting: 0, invalid });
  expect(report.mock.calls).toEqual(invalid ? [[`Line 1: ${cause.message}`]] : []);
  report.mockRestore();
});

it('importLines stores the complete lines before a failure of its input', async () => {
  const input = function* () {
    yield '{"id":1,"name":"x"}\n{"id":2,';
    throw new Error('the disk is unreachable');
  };
  const counts = { stored: 0, present: 0, conflicting: 0, invalid: 0 };
  const importing = importLines(Readable.from(input()), new InMemoryPlantsRepository(), counts);

  await expect(importing).rejects.toThrow('Line 2 cannot be read: the disk is unreachable.');
  expect(counts.stored).toBe(1);
});

/** Tests how `importLines` reads its input, and handles the plants that a repository rejects. */
import { Readable } from 'node:stream';
import { gzipSync } from 'node:zlib';
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

it('importLines counts what its last batch has stored, and stops all retries, when it gives up', async () => {
  const repository = new InMemoryPlantsRepository();
  const insert = repository.insert.bind(repository);
  let attempts = 0;
  jest.spyOn(repository, 'insert').mockImplementation((plant) => {
    attempts++;
    return plant.id === 1n ? insert(plant) : Promise.reject(new UnavailableError());
  });
  // Each look at the clock is 40 seconds later.
  let now = 0;
  const clock = jest.spyOn(performance, 'now').mockImplementation(() => {
    now += 40_000;
    return now;
  });
  const lines = '{"id":1,"name":"x"}\n{"id":2,"name":"x"}\n{"id":3,"name":"x"}\n';
  const counts = { stored: 0, present: 0, conflicting: 0, invalid: 0 };

  const importing = importLines(Readable.from([Buffer.from(lines)]), repository, counts);

  await expect(importing).rejects.toThrow(UnavailableError);
  expect(counts.stored).toBe(1);
  const attemptsThen = attempts;
  await new Promise((resolve) => setTimeout(resolve, 600));
  expect(attempts).toBe(attemptsThen);
  clock.mockRestore();
});

const PLANT = '{"id":1,"name":"x"}\n';

it.each([
  ['compressed by gzip', gzipSync(PLANT)],
  ['compressed by zstd', Buffer.from('28b52ffd2014a1', 'hex')],
  ['a ZIP archive', Buffer.from('PK\x03\x04')],
  ['UTF-16', Buffer.from(`\uFEFF${PLANT}`, 'utf16le')],
  ['UTF-16', Buffer.from(PLANT, 'utf16le')],
  ['UTF-16', Buffer.from(PLANT, 'utf16le').swap16()],
  ['a JSON array', Buffer.from(`[${PLANT}]`)],
  ['a JSON array', Buffer.from(JSON.stringify([{ id: 1 }], undefined, 2))],
  ['JSON over several lines', Buffer.from(JSON.stringify({ id: 1 }, undefined, 2))],
])('importLines says in one sentence that a file is %s', async (format, content) => {
  const report = jest.spyOn(console, 'error').mockImplementation();
  const counts = { stored: 0, present: 0, conflicting: 0, invalid: 0 };

  const importing = importLines(Readable.from([content]), new InMemoryPlantsRepository(), counts);

  await expect(importing).rejects.toThrow(`The input is ${format}, not JSON Lines: `);
  expect(counts.invalid).toBe(0);
  expect(report).not.toHaveBeenCalled();
  report.mockRestore();
});

import fc from 'fast-check';
import { OutcomeUnknownError, PlantStoreError, UnavailableError } from '../../errors/errors';
import { type BatchStatements, insertBatch, type StatementError } from './insert-batch';
import { type KeyedPlant, duplicateOutcome } from '../keyed-plant';

/** A database that rejects rows with a certain name, and fails with the errors that a test adds. */
class Database implements BatchStatements {
  readonly stored = new Map<bigint, KeyedPlant>();
  readonly statements: bigint[][] = [];
  /** The reach of each error of the next statements, in order. */
  readonly failures: StatementError['reach'][] = [];

  insert(rows: readonly KeyedPlant[]): Promise<Set<bigint>> {
    this.statements.push(rows.map(({ id }) => id));
    const failure = this.failures.shift();
    if (failure) return Promise.reject(new Error(failure));
    if (rows.some(({ name }) => name === 'rejected')) return Promise.reject(new Error('row'));
    const newRows = rows.filter(({ id }) => !this.stored.has(id));
    for (const row of newRows) this.stored.set(row.id, row);
    return Promise.resolve(new Set(newRows.map(({ id }) => id)));
  }

  findStored(rows: readonly KeyedPlant[]): Promise<Map<bigint, KeyedPlant>> {
    const found = rows.flatMap(({ id }) => this.stored.get(id) ?? []);
    return Promise.resolve(new Map(found.map((plant) => [plant.id, plant])));
  }

  handle(error: unknown): Promise<StatementError> {
    const cause = error as Error;
    return Promise.resolve({ reach: cause.message as StatementError['reach'], cause });
  }
}

const createPlant = (id: number, name = 'Fern', keyDigest?: string): KeyedPlant => ({
  ...{ id: BigInt(id), name },
  ...(keyDigest !== undefined && { keyDigest }),
});

describe('insertBatch', () => {
  it('returns the outcomes of inserting the plants one after another, for any batch', async () => {
    const plant = fc
      .record({
        id: fc.integer({ min: 1, max: 4 }),
        name: fc.constantFrom('Fern', 'Moss'),
        keyDigest: fc.constantFrom(undefined, 'a', 'b'),
      })
      .map(({ id, name, keyDigest }) => createPlant(id, name, keyDigest));
    await fc.assert(
      fc.asyncProperty(fc.array(fc.array(plant, { minLength: 1 })), async (batches) => {
        const database = new Database();
        const model = new Map<bigint, KeyedPlant>();
        for (const batch of batches) {
          const expected = batch.map((each) => {
            const stored = model.get(each.id);
            if (stored) return duplicateOutcome(stored, each);
            model.set(each.id, each);
            return 'created';
          });

          expect(await insertBatch(batch, database)).toEqual(expected);
        }
        expect(database.stored).toEqual(model);
      }),
      { numRuns: 500, verbose: true },
    );
  });

  it('sends each id once, in order', async () => {
    const database = new Database();

    await insertBatch([createPlant(3), createPlant(1), createPlant(3), createPlant(2)], database);

    expect(database.statements).toEqual([[1n, 2n, 3n]]);
  });

  it('rejects only the rows that the database rejects, and repetitions of their ids', async () => {
    const database = new Database();
    const plants = Array.from({ length: 9 }, (_, id) =>
      createPlant(id, id === 5 ? 'rejected' : 'Fern'),
    );

    const outcomes = await insertBatch([...plants, createPlant(5)], database);

    expect(outcomes.filter((outcome) => outcome === 'created')).toHaveLength(8);
    expect(outcomes[5]).toMatchObject({ body: new PlantStoreError('internal').body });
    // Not as unavailable, which would make the whole store recover.
    expect(outcomes[9]).toBe(outcomes[5]);
  });

  it.each([
    [9, 'created'],
    [10, expect.any(UnavailableError)],
  ])('after %i retryable errors of a statement, the outcome is %s', async (errors, outcome) => {
    const database = new Database();
    database.failures.push(...Array<'retry'>(errors).fill('retry'));

    expect(await insertBatch([createPlant(1)], database)).toEqual([outcome]);
    expect(database.statements).toHaveLength(10);
  });

  it('sends nothing more when the session is lost while the batch is split', async () => {
    const database = new Database();
    database.failures.push('row', 'session');

    const outcomes = await insertBatch([createPlant(1), createPlant(2)], database);

    expect(outcomes).toEqual([expect.any(OutcomeUnknownError), expect.any(UnavailableError)]);
    expect(database.statements).toEqual([[1n, 2n], [1n]]);
  });

  it('reports that nothing was stored when the error concerns the whole batch', async () => {
    const database = new Database();
    database.failures.push('batch');

    const outcomes = await insertBatch([createPlant(1), createPlant(2)], database);

    expect(outcomes).toEqual([expect.any(UnavailableError), expect.any(UnavailableError)]);
    expect(database.stored.size).toBe(0);
  });

  it('rejects a retry as unavailable when the stored plant cannot be read', async () => {
    const database = new Database();
    await insertBatch([createPlant(1, 'Fern', 'a')], database);
    database.findStored = () => Promise.reject(new Error('batch'));

    const outcomes = await insertBatch([createPlant(1, 'Fern', 'a')], database);

    expect(outcomes).toEqual([expect.any(UnavailableError)]);
  });

  it('does not report that a plant exists when it was neither inserted nor found', async () => {
    const database = new Database();
    database.insert = () => Promise.resolve(new Set());

    const outcomes = await insertBatch([createPlant(1), createPlant(1, 'Fern', 'a')], database);

    const { body } = new PlantStoreError('internal');
    expect(outcomes).toMatchObject([{ body }, { body }]);
  });
});

import fc from 'fast-check';
import { type BatchStatements, insertBatch, type StatementFailure } from './insert-batch';
import { type KeyedPlant, duplicateOutcome } from '../idempotency';
import { toFailure } from './postgres.errors';

/** A database that rejects rows with a certain name, and fails with the errors that a test adds. */
class Database implements BatchStatements {
  readonly stored = new Map<bigint, KeyedPlant>();
  readonly statements: bigint[][] = [];
  /** The reach of each error of the next statements, in order. */
  readonly failures: StatementFailure['reach'][] = [];

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

  handle(error: unknown): Promise<StatementFailure> {
    const reach = (error as Error).message as StatementFailure['reach'];
    return Promise.resolve({ reach, failure: toFailure('the store', error, reach) });
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
    expect(outcomes[5]).toMatchObject({ kind: 'row' });
    // Not as unavailable, which would make the whole store recover.
    expect(outcomes[9]).toBe(outcomes[5]);
  });

  it.each([
    [9, 'created'],
    [10, expect.objectContaining({ kind: 'notStored' })],
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

    const message = 'the store: session.';
    expect(outcomes).toMatchObject([
      { kind: 'unknown', message },
      { kind: 'notStored', message },
    ]);
    expect(database.statements).toEqual([[1n, 2n], [1n]]);
  });

  it('reports that nothing was stored when the error concerns the whole batch', async () => {
    const database = new Database();
    database.failures.push('batch');

    const outcomes = await insertBatch([createPlant(1), createPlant(2)], database);

    expect(outcomes).toMatchObject([{ kind: 'notStored' }, { kind: 'notStored' }]);
    expect(database.stored.size).toBe(0);
  });

  it('rejects a retry as unavailable when the stored plant cannot be read', async () => {
    const database = new Database();
    await insertBatch([createPlant(1, 'Fern', 'a')], database);
    database.findStored = () => Promise.reject(new Error('batch'));

    const outcomes = await insertBatch([createPlant(1, 'Fern', 'a')], database);

    expect(outcomes).toMatchObject([{ kind: 'notStored', message: 'the store: batch.' }]);
  });

  it('does not report that a plant exists when it was neither inserted nor found', async () => {
    const database = new Database();
    database.insert = () => Promise.resolve(new Set());

    const outcomes = await insertBatch([createPlant(1), createPlant(1, 'Fern', 'a')], database);

    expect(outcomes).toMatchObject([{ kind: 'row' }, { kind: 'row' }]);
  });
});

import fc from 'fast-check';
import type { Plant, PlantsRepository } from '../src/plants';

/** A store under test: two repositories on it, and a way to read it without them. */
export interface StoreUnderTest {
  readonly repository: PlantsRepository;
  /** Another repository on the same store, as in a second instance of the service. */
  readonly second: PlantsRepository;
  plants(): Plant[] | Promise<Plant[]>;
  close(): Promise<void>;
}

const id = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
/** Any string that the contract accepts: no unpaired surrogate, no U+0000. */
const text = fc.string({ unit: 'binary' }).map((string) => string.replaceAll('\0', ''));
const plant: fc.Arbitrary<Plant> = fc.oneof(
  fc.record({ id, name: text }),
  fc.record({ id, name: text, tag: text }),
);

/** The tests that every {@link PlantsRepository} passes, on a real database. */
export function describeRepository(name: string, open: () => Promise<StoreUnderTest>): void {
  describe(`${name}, as a PlantsRepository`, () => {
    let store: StoreUnderTest;
    beforeEach(async () => {
      store = await open();
    });
    afterEach(() => store.close());

    it('stores a plant', async () => {
      const inserted = await store.repository.insert({ id: 1n, name: 'Fern', tag: 'shade' });

      expect(inserted).toBe(true);
      expect(await store.plants()).toEqual([{ id: 1n, name: 'Fern', tag: 'shade' }]);
    });

    it('distinguishes a missing tag from an empty one', async () => {
      await store.repository.insert({ id: 1n, name: 'Fern' });
      await store.repository.insert({ id: 2n, name: 'Fern', tag: '' });

      expect(await store.plants()).toEqual([
        { id: 1n, name: 'Fern' },
        { id: 2n, name: 'Fern', tag: '' },
      ]);
    });

    it('does not change the plant that has the id', async () => {
      await store.repository.insert({ id: 1n, name: 'Fern' });

      const inserted = await store.repository.insert({ id: 1n, name: 'Moss', tag: 'wet' });

      expect(inserted).toBe(false);
      expect(await store.plants()).toEqual([{ id: 1n, name: 'Fern' }]);
    });

    it('stores any plant exactly', async () => {
      await fc.assert(
        fc.asyncProperty(
          fc.uniqueArray(plant, { selector: (each) => each.id, maxLength: 50 }),
          async (plants) => {
            const before = new Set((await store.plants()).map((each) => each.id));

            const inserted = await Promise.all(plants.map((each) => store.repository.insert(each)));

            const after = new Map((await store.plants()).map((each) => [each.id, each]));
            plants.forEach((each, at) => {
              expect(inserted[at]).toBe(!before.has(each.id));
              if (inserted[at]) expect(after.get(each.id)).toEqual(each);
            });
          },
        ),
        { numRuns: 50, verbose: true },
      );
    });

    it('stores exactly one of the plants inserted with one id at the same time', async () => {
      const attempts = Array.from({ length: 200 }, (_, at) => ({
        id: BigInt(at % 50),
        name: `Fern ${at}`,
      }));

      const inserted = await Promise.all(
        attempts.map((each, at) => (at % 2 ? store.repository : store.second).insert(each)),
      );

      const winners = attempts.filter((_, at) => inserted[at]);
      expect(winners).toHaveLength(50);
      expect(await store.plants()).toEqual(winners.toSorted((a, b) => Number(a.id - b.id)));
    });

    it('finds a plant by its id', async () => {
      const stored = { id: 2n ** 53n + 1n, name: 'Fern', tag: '' };
      await store.repository.insert(stored);

      expect(await store.repository.find(stored.id)).toEqual(stored);
      expect(await store.repository.find(stored.id - 1n)).toBeUndefined();
    });

    it('returns pages in id order, from the smallest id to the largest', async () => {
      const ids = [-(2n ** 63n), -5n, 0n, 7n, 2n ** 53n + 1n, 2n ** 63n - 1n];
      await Promise.all(
        ids.toReversed().map((each) => store.second.insert({ id: each, name: '' })),
      );

      const first = await store.repository.page(undefined, 4);
      const second = await store.repository.page(first.at(-1)?.id, 4);
      const third = await store.repository.page(second.at(-1)?.id, 4);

      expect([first, second, third].map((page) => page.map((each) => each.id))).toEqual([
        ids.slice(0, 4),
        ids.slice(4),
        [],
      ]);
    });

    it('stores texts of a mebibyte beside short ones', async () => {
      const plants = Array.from({ length: 20 }, (_, at) => ({
        id: BigInt(at),
        name: at % 2 ? 'Fern' : '🌿'.repeat(2 ** 18),
      }));

      await Promise.all(plants.map((each) => store.repository.insert(each)));

      expect(await store.plants()).toEqual(plants);
    });
  });
}

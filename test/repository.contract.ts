import fc from 'fast-check';
import type { Plant, PlantsRepository } from '../src/plants';

/** A store under the contract: the repository, and a look at what is kept that does not use it. */
export interface StoreUnderTest {
  readonly repository: PlantsRepository;
  /** Another repository on the same store, as a further instance of the service has it. */
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

/** What every {@link PlantsRepository} does, on a real database. */
export function describeRepository(name: string, open: () => Promise<StoreUnderTest>): void {
  describe(`${name}, as a PlantsRepository`, () => {
    let store: StoreUnderTest;
    beforeEach(async () => {
      store = await open();
    });
    afterEach(() => store.close());

    it('keeps a plant', async () => {
      const kept = await store.repository.insert({ id: 1n, name: 'Fern', tag: 'shade' });

      expect(kept).toBe(true);
      expect(await store.plants()).toEqual([{ id: 1n, name: 'Fern', tag: 'shade' }]);
    });

    it('tells no tag from an empty tag', async () => {
      await store.repository.insert({ id: 1n, name: 'Fern' });
      await store.repository.insert({ id: 2n, name: 'Fern', tag: '' });

      expect(await store.plants()).toEqual([
        { id: 1n, name: 'Fern' },
        { id: 2n, name: 'Fern', tag: '' },
      ]);
    });

    it('leaves the plant that has the id as it was', async () => {
      await store.repository.insert({ id: 1n, name: 'Fern' });

      const kept = await store.repository.insert({ id: 1n, name: 'Moss', tag: 'wet' });

      expect(kept).toBe(false);
      expect(await store.plants()).toEqual([{ id: 1n, name: 'Fern' }]);
    });

    it('keeps any plant exactly', async () => {
      await fc.assert(
        fc.asyncProperty(
          fc.uniqueArray(plant, { selector: (each) => each.id, maxLength: 50 }),
          async (plants) => {
            const before = new Set((await store.plants()).map((each) => each.id));

            const kept = await Promise.all(plants.map((each) => store.repository.insert(each)));

            const after = new Map((await store.plants()).map((each) => [each.id, each]));
            plants.forEach((each, at) => {
              expect(kept[at]).toBe(!before.has(each.id));
              if (kept[at]) expect(after.get(each.id)).toEqual(each);
            });
          },
        ),
        { numRuns: 50, verbose: true },
      );
    });

    it('keeps exactly one of the plants that want an id at the same time', async () => {
      const wanted = Array.from({ length: 200 }, (_, at) => ({
        id: BigInt(at % 50),
        name: `Fern ${at}`,
      }));

      const kept = await Promise.all(
        wanted.map((each, at) => (at % 2 ? store.repository : store.second).insert(each)),
      );

      const winners = wanted.filter((_, at) => kept[at]);
      expect(winners).toHaveLength(50);
      expect(await store.plants()).toEqual(winners.toSorted((a, b) => Number(a.id - b.id)));
    });

    it('finds a plant by its id', async () => {
      const kept = { id: 2n ** 53n + 1n, name: 'Fern', tag: '' };
      await store.repository.insert(kept);

      expect(await store.repository.find(kept.id)).toEqual(kept);
      expect(await store.repository.find(kept.id - 1n)).toBeUndefined();
    });

    it('gives pages in id order, from the smallest id to the largest', async () => {
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

    it('keeps texts of a mebibyte beside short ones', async () => {
      const plants = Array.from({ length: 20 }, (_, at) => ({
        id: BigInt(at),
        name: at % 2 ? 'Fern' : '🌿'.repeat(2 ** 18),
      }));

      await Promise.all(plants.map((each) => store.repository.insert(each)));

      expect(await store.plants()).toEqual(plants);
    });
  });
}

import { hash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import type { InsertOutcome, Plant, PlantsRepository } from '../../src/plants';
import { CONTENT_PROPERTIES } from '../../src/plants/plant/plant';

/** A store under test, with two repositories on it. */
export interface StoreUnderTest {
  readonly repository: PlantsRepository;
  /** A second repository on the same store, like that of another instance of the service. */
  readonly second: PlantsRepository;
  plants(): Plant[] | Promise<Plant[]>;
  removePlants(): void | Promise<void>;
  close(): Promise<void>;
}

const id = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
/** Any string that the contract accepts: no unpaired surrogate, no U+0000. */
const text = fc.string({ unit: 'binary' }).map((string) => string.replaceAll('\0', ''));
/** Any plant, with or without each property that may be absent. */
const plant = fc.record(
  { id, ...Object.fromEntries(CONTENT_PROPERTIES.map((property) => [property, text])) },
  { requiredKeys: ['id', 'name'] as never[] },
) as fc.Arbitrary<Plant>;

const byId = (one: Plant, other: Plant): number => Number(one.id - other.id);

/** Creates a digest like that of a caller and a key. */
const keyOf = (number: number): string => hash('sha256', String(number));

/** Whether two plants have the same content. Compares each property, without the list that the repositories use. */
const hasSameContent = ({ id: _, ...one }: Plant, { id: __, ...other }: Plant): boolean =>
  isDeepStrictEqual(one, other);

/** A model of how a repository handles keys. */
class Model {
  private readonly stored = new Map<bigint, { plant: Plant; key: string | undefined }>();

  insert(plant: Plant, key: string | undefined): InsertOutcome {
    const other = this.stored.get(plant.id);
    if (other === undefined) {
      this.stored.set(plant.id, { plant, key });
      return 'created';
    }
    if (key === undefined || other.key !== key) return 'taken';
    return hasSameContent(other.plant, plant) ? 'replayed' : 'keyReused';
  }

  plants(): Plant[] {
    return [...this.stored.values()].map(({ plant: stored }) => stored).toSorted(byId);
  }
}

/** The tests that every {@link PlantsRepository} passes, on a real database. */
export function describeRepository(name: string, open: () => Promise<StoreUnderTest>): void {
  describe(`${name} as a PlantsRepository`, () => {
    let store: StoreUnderTest;
    beforeAll(async () => {
      store = await open();
    });
    afterEach(() => store.removePlants());
    afterAll(() => store.close());

    it('stores any plant exactly', async () => {
      await fc.assert(
        fc.asyncProperty(
          fc.uniqueArray(plant, { selector: (each) => each.id, maxLength: 50 }),
          async (plants) => {
            await store.removePlants();

            const inserted = await Promise.all(plants.map((each) => store.repository.insert(each)));

            expect(inserted).toEqual(plants.map(() => 'created'));
            expect(await store.plants()).toEqual(plants.toSorted(byId));
          },
        ),
        { numRuns: 50, verbose: true },
      );
    });

    it('stores exactly one of the plants inserted with one id at the same time', async () => {
      const attempts = Array.from({ length: 200 }, (_, at) => {
        return { id: BigInt(at % 50), name: `Fern ${at}` };
      });

      const inserted = await Promise.all(
        attempts.map((each, at) => (at % 2 ? store.repository : store.second).insert(each)),
      );

      const winners = attempts.filter((_, at) => inserted[at] === 'created');
      expect(winners).toHaveLength(50);
      expect(await store.plants()).toEqual(winners.toSorted(byId));
    });

    it('finds a plant by its id', async () => {
      const stored = { id: 2n ** 53n + 1n, name: 'Fern', tag: '' };
      await store.repository.insert(stored);

      expect(await store.repository.find(stored.id)).toEqual(stored);
      expect(await store.repository.find(stored.id - 1n)).toBeUndefined();
    });

    it('returns pages in id order, from the smallest id to the largest', async () => {
      const ids = [-(2n ** 63n), -5n, 0n, 7n, 2n ** 53n + 1n, 2n ** 63n - 1n];
      const plants = ids.toReversed().map((each) => ({ id: each, name: '' }));
      await Promise.all(plants.map((each) => store.second.insert(each)));

      const first = await store.repository.page(undefined, 4);
      const second = await store.repository.page(first.at(-1)?.id, 4);
      const third = await store.repository.page(second.at(-1)?.id, 4);

      const found = [first, second, third].map((page) => page.map((each) => each.id));
      expect(found).toEqual([ids.slice(0, 4), ids.slice(4), []]);
      // No id is larger or smaller.
      expect(await store.repository.page(2n ** 64n, 1)).toEqual([]);
      expect(await store.repository.page(-(2n ** 64n), 6)).toEqual([...first, ...second]);
    });

    describe('with a key', () => {
      it('replays only the content that was stored, of two at the same time', async () => {
        const names = Array.from({ length: 10 }, (_, at) => `Fern ${at % 2}`);

        const insertions = await Promise.all(
          names.map((name, at) =>
            (at % 4 < 2 ? store.repository : store.second).insert({ id: 1n, name }, keyOf(1)),
          ),
        );

        const [winner] = await store.plants();
        names.forEach((name, at) => {
          const expected = name === winner?.name ? /created|replayed/ : /keyReused/;
          expect(insertions[at]).toMatch(expected);
        });
        expect(insertions.filter((each) => each === 'created')).toHaveLength(1);
      });

      it('behaves like the reference model for any sequence of inserts', async () => {
        const attempt = fc.record({
          plant: fc.record(
            {
              // So few values that many inserts repeat an id, a key or a content.
              id: fc.bigInt({ min: 1n, max: 3n }),
              name: fc.constantFrom('Fern', 'fern', '\u00e9', 'e\u0301'),
              tag: fc.constant(''),
            },
            { requiredKeys: ['id', 'name'] },
          ),
          key: fc.option(fc.integer({ min: 1, max: 2 }).map(keyOf), { nil: undefined }),
          /** Whether the insert waits for the earlier inserts. */
          isAlone: fc.boolean(),
          isSecond: fc.boolean(),
        });
        const seen = new Set<InsertOutcome>();
        let runs = 0n;
        await fc.assert(
          fc.asyncProperty(fc.array(attempt, { maxLength: 30 }), async (attempts) => {
            // Each run has its own ids.
            runs++;
            const model = new Model();
            const pending: Promise<unknown>[] = [];
            let repository = store.repository;
            for (const { key, isAlone, isSecond, ...rest } of attempts) {
              const each = { ...rest.plant, id: rest.plant.id + runs * 10n };
              if (isAlone) {
                await Promise.all(pending.splice(0));
                // Inserts through two repositories have no order, unless one waits for the other.
                repository = isSecond ? store.second : store.repository;
              }
              const expected = model.insert(each, key);
              seen.add(expected);
              pending.push(expect(repository.insert(each, key)).resolves.toBe(expected));
            }
            await Promise.all(pending);

            const stored = await store.plants();
            expect(stored.filter(({ id: of }) => of / 10n === runs)).toEqual(model.plants());
          }),
          { numRuns: 60, verbose: true },
        );
        expect([...seen].toSorted()).toEqual(['created', 'keyReused', 'replayed', 'taken']);
      });
    });
  });
}

import type { Plant } from '../plant';
import { type Insertion, PlantsRepository } from '../plants.repository';

interface Row {
  readonly plant: Plant;
  readonly key: string | undefined;
}

/** Keeps plants as long as the process lives: for the tests of a host. */
export class InMemoryPlantsRepository extends PlantsRepository {
  private readonly rows = new Map<bigint, Row>();

  override async insert(plant: Plant): Promise<boolean> {
    return (await this.insertOnce(plant)) === 'created';
  }

  override insertOnce({ id, name, tag }: Plant, key?: string): Promise<Insertion> {
    const row = this.rows.get(id);
    if (row === undefined) {
      this.rows.set(id, { plant: tag === undefined ? { id, name } : { id, name, tag }, key });
      return Promise.resolve('created');
    }
    if (key === undefined || row.key !== key) return Promise.resolve('taken');
    const isSame = row.plant.name === name && row.plant.tag === tag;
    return Promise.resolve(isSame ? 'replayed' : 'keyReused');
  }

  override find(id: bigint): Promise<Plant | undefined> {
    return Promise.resolve(this.rows.get(id)?.plant);
  }

  override page(after: bigint | undefined, limit: number): Promise<Plant[]> {
    const plants = [...this.rows.values()]
      .map(({ plant }) => plant)
      .filter(({ id }) => after === undefined || id > after)
      .sort((one, other) => (one.id < other.id ? -1 : 1));
    return Promise.resolve(plants.slice(0, limit));
  }
}

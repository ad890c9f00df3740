import { contentOf, type Plant } from '../plant/plant';
import { type InsertOutcome, PlantsRepository } from '../plants.repository';
import { type KeyedPlant, duplicateOutcome } from './idempotency';

/** Keeps plants in memory. For your tests. */
export class InMemoryPlantsRepository extends PlantsRepository {
  private readonly rows = new Map<bigint, KeyedPlant>();

  override insert(newPlant: Plant, keyDigest?: string): Promise<InsertOutcome> {
    const plant = { id: newPlant.id, ...contentOf(newPlant), keyDigest };
    const stored = this.rows.get(plant.id);
    if (stored) return Promise.resolve(duplicateOutcome(stored, plant));
    this.rows.set(plant.id, plant);
    return Promise.resolve('created');
  }

  override find(id: bigint): Promise<Plant | undefined> {
    const row = this.rows.get(id);
    return Promise.resolve(row && toPlant(row));
  }

  override page(after: bigint | undefined, limit: number): Promise<Plant[]> {
    const rows = [...this.rows.values()]
      .filter(({ id }) => after === undefined || id > after)
      .sort((one, other) => (one.id < other.id ? -1 : 1));
    return Promise.resolve(rows.slice(0, limit).map(toPlant));
  }
}

const toPlant = (row: KeyedPlant): Plant => ({ id: row.id, ...contentOf(row) });

import { Injectable } from '@nestjs/common';
import { IdTakenError } from '../errors';
import { assertNewPlant } from './new-plant.validation';
import type { Plant } from './plant';
import { PlantsRepository } from './plants.repository';

/** Plants that a page of {@link PlantsService.all} holds at most. */
const PAGE = 200;

/** Creates and reads plants, for the HTTP operation and for a host in process. */
@Injectable()
export class PlantsService {
  constructor(private readonly plants: PlantsRepository) {}

  /**
   * Creates a plant.
   *
   * @returns the plant, once it is durable
   * @throws InvalidPlantError when the id is no int64, or a text cannot be kept exactly
   * @throws IdTakenError when a plant with this id exists; that one stays as it was
   * @throws UnavailableError when it was refused before anything was stored
   * @throws OutcomeUnknownError when it may or may not be stored
   */
  async create({ id, name, tag }: Plant): Promise<Plant> {
    // The caller's object may change before it is stored.
    const plant: Plant = tag === undefined ? { id, name } : { id, name, tag };
    // A caller in process has passed no pipe, and a bigint of more than 64 bits would be cut.
    assertNewPlant(plant);
    const kept = await this.plants.insert(plant);
    if (!kept) throw new IdTakenError();
    return plant;
  }

  /**
   * The plant that has an id, -2^63 to 2^63 - 1.
   *
   * @throws UnavailableError when the store does not answer
   */
  async find(id: bigint): Promise<Plant | undefined> {
    return this.plants.find(id);
  }

  /**
   * All plants in id order, read in pages, so that memory stays flat. Plants created meanwhile
   * appear if their id is still to come.
   *
   * @throws UnavailableError when the store does not answer
   */
  async *all(): AsyncGenerator<Plant, void, undefined> {
    let last: bigint | undefined;
    for (;;) {
      const page = await this.plants.page(last, PAGE);
      if (page.length === 0) return;
      yield* page;
      last = page.at(-1)?.id;
    }
  }
}

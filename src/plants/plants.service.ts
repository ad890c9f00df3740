import { Injectable } from '@nestjs/common';
import { IdTakenError } from '../errors';
import { NewPlantDto } from './dto/new-plant.dto';
import { validateNewPlant } from './new-plant.validation';
import type { Plant } from './plant';
import { PlantsRepository } from './plants.repository';

/** The most plants on a page of {@link PlantsService.all}. */
const PAGE = 200;

/** Creates and reads plants, for the HTTP operation and for callers in process. */
@Injectable()
export class PlantsService {
  constructor(private readonly plants: PlantsRepository) {}

  /**
   * Creates a plant.
   *
   * @returns the plant, once it is durable
   * @throws InvalidPlantError when the id is not an int64, or a string cannot be stored exactly
   * @throws IdTakenError when a plant with this id exists; the stored plant is unchanged
   * @throws UnavailableError when the plant was refused before anything was stored
   * @throws OutcomeUnknownError when the plant may or may not be stored
   */
  async create(plant: Plant): Promise<Plant> {
    // The pipe has validated a NewPlantDto. Anything else is a caller's own object, which may have
    // an id of more than 64 bits, and may change before it is stored.
    const newPlant = plant instanceof NewPlantDto ? plant : validateNewPlant(plant);
    const isStored = await this.plants.insert(newPlant);
    if (!isStored) throw new IdTakenError();
    return newPlant;
  }

  /**
   * The plant with an id, -2^63 to 2^63 - 1; undefined when there is none.
   *
   * @throws UnavailableError when the store does not answer
   */
  async find(id: bigint): Promise<Plant | undefined> {
    return this.plants.find(id);
  }

  /**
   * All plants in id order, read page by page, so that memory stays flat. A plant created meanwhile
   * is included when its id is larger than the ids read so far.
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

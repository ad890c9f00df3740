import { Injectable } from '@nestjs/common';
import { IdTakenError } from '../errors';
import type { Plant } from './plant';
import { PlantsRepository } from './plants.repository';

/** What it means to create a plant. */
@Injectable()
export class PlantsService {
  constructor(private readonly plants: PlantsRepository) {}

  /**
   * Creates a plant.
   *
   * @returns the plant, once it is durable
   * @throws IdTakenError when a plant with this id exists; that one stays as it was
   * @throws UnavailableError when it was refused before anything was stored
   * @throws OutcomeUnknownError when it may or may not be stored
   */
  async create(plant: Plant): Promise<Plant> {
    const kept = await this.plants.insert(plant);
    if (!kept) throw new IdTakenError();
    return plant;
  }
}

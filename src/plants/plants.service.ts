import { Injectable } from '@nestjs/common';
import type { Caller } from './http/caller';
import { NewPlantDto } from './plant/plant.dto';
import { IdempotencyKeyReusedError, IdTakenError } from './errors/errors';
import { digestIdempotencyKey } from './http/idempotency-key';
import { isInt64 } from './plant/int64';
import type { CreatedPlant, Plant } from './plant/plant';
import { PlantsRepository } from './plants.repository';

/** Options of {@link PlantsService.create}. */
export interface CreatePlantOptions {
  /**
   * Makes the call safe to retry. 1 to 255 visible ASCII characters, as in the `Idempotency-Key` header without quotation
   * marks. Use a new key for each plant, for example a UUID.
   * @default none
   */
  readonly idempotencyKey?: string | undefined;
  /**
   * Who creates the plant. Each caller has its own keys, the same here and over HTTP: two callers may use the same key
   * for different plants.
   * @default none; all calls without a caller share their keys
   */
  readonly caller?: Caller | undefined;
}

/** Creates and reads plants. The HTTP route uses it, and so can your own providers. */
@Injectable()
export class PlantsService {
  constructor(private readonly plants: PlantsRepository) {}

  /**
   * Creates a plant. With an idempotency key, you can call it again until it succeeds: if an earlier call with the same
   * caller, key and content created the plant, the result is the same plant.
   * @returns the plant, once it is durable
   * @throws InvalidPlantError when the id is not an int64 or a string cannot be stored exactly
   * @throws InvalidIdempotencyKeyError when the key is not 1 to 255 visible ASCII characters
   * @throws IdTakenError when a plant with this id already exists; the stored plant is unchanged
   * @throws IdempotencyKeyReusedError when the caller created this id with the same key but different content
   * @throws UnavailableError when the plant was rejected before anything was stored
   * @throws OutcomeUnknownError when the plant may or may not be stored
   */
  async create(plant: Plant, options: CreatePlantOptions = {}): Promise<CreatedPlant> {
    const newPlant: Plant = NewPlantDto.from(plant);
    const { idempotencyKey: text, caller } = options;
    const key = text === undefined ? undefined : digestIdempotencyKey(text, caller);
    const outcome = await this.plants.insert(newPlant, key);
    if (outcome === 'taken') throw new IdTakenError();
    if (outcome === 'keyReused') throw new IdempotencyKeyReusedError();
    return { ...newPlant, isReplay: outcome === 'replayed' };
  }

  /**
   * Reads the plant with an id from -2^63 to 2^63 - 1. Returns undefined if there is none.
   * @throws UnavailableError when the store does not respond
   */
  async find(id: bigint): Promise<Plant | undefined> {
    // A database cannot compare other ids.
    return isInt64(id) ? this.plants.find(id) : undefined;
  }
}

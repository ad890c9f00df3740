import { Injectable } from '@nestjs/common';
import type { Caller } from './auth/caller';
import { NewPlantDto } from './dto/plant.dto';
import { IdempotencyKeyReusedError, IdTakenError } from './errors/errors';
import { digestIdempotencyKey } from './idempotency-key';
import { CreatedPlant, type Plant, StoredPlant } from './plant';
import { pagesOf, PlantsRepository } from './plants.repository';

/** What may be said about a creation. */
export interface CreationOptions {
  /**
   * Makes the creation safe to repeat: 1 to 255 visible ASCII characters, as in the `Idempotency-Key`
   * header without its quotation marks. Choose a new key for each plant, a UUID for example.
   *
   * @default none
   */
  readonly idempotencyKey?: string | undefined;
  /**
   * Who creates the plant. Keys of different callers are different keys. A caller has the same keys
   * here and over HTTP.
   *
   * @default none: all creations without a caller share their keys
   */
  readonly caller?: Caller | undefined;
}

/** For the HTTP operation and for callers in process. */
@Injectable()
export class PlantsService {
  constructor(private readonly plants: PlantsRepository) {}

  /**
   * Creates a plant. With an idempotency key it may be called again until it succeeds: if the plant
   * was created by an earlier call with the same caller, key and content, that is a success too.
   *
   * @returns the plant, once it is durable
   * @throws InvalidPlantError when the id is not an int64, or a string cannot be stored exactly
   * @throws InvalidIdempotencyKeyError when the key is not 1 to 255 visible ASCII characters
   * @throws IdTakenError when a plant with this id exists; the stored plant is unchanged
   * @throws IdempotencyKeyReusedError when the caller created it with the same key and other content
   * @throws UnavailableError when the plant was refused before anything was stored
   * @throws OutcomeUnknownError when the plant may or may not be stored
   */
  async create(
    plant: Plant,
    { idempotencyKey, caller }: CreationOptions = {},
  ): Promise<CreatedPlant> {
    const newPlant = NewPlantDto.from(plant);
    const key =
      idempotencyKey === undefined ? undefined : digestIdempotencyKey(idempotencyKey, caller);
    const insertion = await this.plants.insert(newPlant, key);
    if (insertion === 'taken') throw new IdTakenError();
    if (insertion === 'keyReused') throw new IdempotencyKeyReusedError();
    return new CreatedPlant(newPlant, insertion === 'replayed');
  }

  /**
   * The plant with an id, -2^63 to 2^63 - 1; undefined when there is none.
   *
   * @throws UnavailableError when the store does not answer
   */
  async find(id: bigint): Promise<StoredPlant | undefined> {
    const plant = await this.plants.find(id);
    return plant && new StoredPlant(plant);
  }

  /**
   * All plants in id order, read page by page, so that memory stays flat. A plant created meanwhile
   * is included when its id is larger than the ids read so far.
   *
   * @throws UnavailableError when the store does not answer
   */
  async *all(): AsyncGenerator<StoredPlant, void, undefined> {
    for await (const page of pagesOf(this.plants)) {
      for (const plant of page) yield new StoredPlant(plant);
    }
  }
}

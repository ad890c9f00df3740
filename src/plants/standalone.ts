/**
 * The module's second door: what the standalone program needs of it beyond `index.ts`, the public
 * face of the package.
 */
export { IDEMPOTENT_REPLAYED } from './idempotency-key';
export { validateNewPlant } from './new-plant.validation';
export { StoreOpenError } from './persistence/archives';
export {
  type BatchEvent,
  batchChannel,
  type CommitEvent,
  commitChannel,
  type CreationEvent,
  creationChannel,
  type CreationOutcome,
  validationChannel,
} from './plants.channels';
export { createPlantRoute } from './plants.route';
export { hasSwagger, SCHEMA_PREFIX } from './swagger-decorators';

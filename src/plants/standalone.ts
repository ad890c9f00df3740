/**
 * The module's second door, for the standalone program: without what only a host needs, and with more
 * than the public face of the package, `index.ts`.
 */
export { IDEMPOTENT_REPLAYED } from './idempotency-key';
export { validateNewPlant } from './new-plant.validation';
export { StoreOpenError } from './persistence';
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
export { PlantsModule } from './plants.module';
export { GUARDED_BY_HOST } from './plants.options';
export { PlantsRepository } from './plants.repository';
export { createPlantRoute } from './plants.route';
export { loadSwagger, SCHEMA_PREFIX } from './swagger-decorators';

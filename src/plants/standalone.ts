/**
 * The module's second door, for the standalone program: without what only a host needs, and with more
 * than the public face of the package, `index.ts`.
 */
export { IDEMPOTENT_REPLAYED } from './idempotency-key';
export { parseInt64 } from './int64';
export { sourceOfMember } from './json-member';
export { validateNewPlant } from './new-plant.validation';
export {
  checkSqlite,
  copySqlite,
  describeSqlite,
  describeUnknownParameter,
  describeUnusablePath,
  openArchive,
  replaceSqlite,
  StoreOpenError,
  urlPerHost,
} from './persistence';
export {
  type ArchivedPlant,
  PlantsArchive,
  type PlantLines,
  type WriteResult,
} from './plants.archive';
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
export { hasSwagger, loadSwagger, SCHEMA_PREFIX } from './swagger-decorators';

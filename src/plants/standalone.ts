/**
 * The module's second door: what the standalone program needs of it beyond `index.ts`, the public
 * face of the package.
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
} from './persistence/standalone';
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
export { createPlantRoute } from './plants.route';
export { hasSwagger, SCHEMA_PREFIX } from './swagger-decorators';

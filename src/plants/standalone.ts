/**
 * The module's second door: what the standalone program needs of it beyond `index.ts`, the public
 * face of the package.
 */
export {
  describeUnknownParameter,
  describeUnusablePath,
  urlPerHost,
  StoreOpenError,
} from './persistence';
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

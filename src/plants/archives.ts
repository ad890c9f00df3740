/**
 * The module's third door: what moves plants in and out of the stores. It loads neither Nest nor the
 * driver of a database, so that a command is small and starts fast.
 */
export { exactId } from './exact-id';
export { parseInt64 } from './int64';
export { findJsonFault } from './json-fault';
export { isValidNewPlant } from './new-plant.rules';
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
} from './persistence/archives';
export {
  type ArchivedPlant,
  PlantsArchive,
  type PlantLines,
  type WriteResult,
} from './plants.archive';

/**
 * The module's third door: what moves plants in and out of the stores. It loads neither Nest nor the
 * driver of a database, so that a command is small and starts fast.
 */
export { parseInt64 } from './int64';
export { describeJsonError, exactId } from './json';
export { isValidNewPlant } from './new-plant.validation';
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

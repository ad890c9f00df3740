export { openArchive } from './open-archive';
export { describeUnknownParameter, urlPerHost } from './postgres/postgres.url';
export { PostgresPlantsRepository } from './postgres/postgres-plants.repository';
export { SqlitePlantsRepository } from './sqlite/sqlite-plants.repository';
export { describeUnusablePath } from './sqlite/sqlite.path';
export {
  checkSqlite,
  copySqlite,
  describeSqlite,
  replaceSqlite,
} from './sqlite/sqlite.maintenance';
export { StoreOpenError } from './store-open.error';

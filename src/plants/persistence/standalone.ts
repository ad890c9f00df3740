/** The stores as files and archives: what the program needs beyond `index.ts`. */
export { openArchive } from './open-archive';
export { describeUnknownParameter, urlPerHost } from './postgres/postgres.url';
export { describeUnusablePath } from './sqlite/sqlite.path';
export {
  checkSqlite,
  copySqlite,
  describeSqlite,
  replaceSqlite,
} from './sqlite/sqlite.maintenance';
export { StoreOpenError } from './store-open.error';

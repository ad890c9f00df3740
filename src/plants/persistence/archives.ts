/** The second door of persistence: stores as archives, without their repositories. */
export { openArchive } from './open-archive';
export { describeUnknownParameter, urlPerHost } from './postgres/postgres.url';
export { describeUnusablePath } from './sqlite/sqlite.open';
export {
  checkSqlite,
  copySqlite,
  describeSqlite,
  replaceSqlite,
} from './sqlite/sqlite.maintenance';
export { StoreOpenError } from './store-open.error';

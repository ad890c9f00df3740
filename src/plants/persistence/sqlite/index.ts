/** What commands need of a SQLite store. The repository is not among it, since it loads Nest. */
export { isBusy } from './sqlite.errors';
export { isInUse } from './sqlite.integrity';
export { readSchemaVersion, SCHEMA_VERSION } from './sqlite.schema';
export { describeUnusablePath, openSqlite } from './sqlite.thread';

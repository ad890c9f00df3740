export { isBusy } from './sqlite.errors';
export { isInUse } from './sqlite.files';
export { sqliteMigrations } from './sqlite.migrations';
export { openSqlite } from './sqlite.open';
export { describeUnusablePath } from './sqlite.path';

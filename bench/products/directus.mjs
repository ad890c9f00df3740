import { execFileSync } from 'node:child_process';
import { createRequire } from 'node:module';
import process from 'node:process';

/**
 * Directus with the settings of its documentation, and the token as that of its administrator. On SQLite, it
 * uses the defaults of SQLite: a rollback journal that is synced at every commit.
 */
const { DATABASE, TOKEN, STORE } = process.env;
Object.assign(process.env, {
  ...(STORE === 'postgres'
    ? { DB_CLIENT: 'pg', DB_CONNECTION_STRING: DATABASE }
    : { DB_CLIENT: 'sqlite3', DB_FILENAME: DATABASE }),
  HOST: '127.0.0.1',
  SECRET: 'a secret of at least thirty-two characters',
  ADMIN_EMAIL: 'admin@example.com',
  ADMIN_PASSWORD: 'a password of the administrator',
  ADMIN_TOKEN: TOKEN,
  LOG_LEVEL: 'error',
  TELEMETRY: 'false',
});
const program = createRequire(import.meta.url).resolve('@directus/api/cli/run.js');
execFileSync(process.execPath, [program, 'bootstrap'], { stdio: ['ignore', 'ignore', 'inherit'] });
process.argv = [process.execPath, program, 'start'];
await import(program);

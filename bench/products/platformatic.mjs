import process from 'node:process';
import { create } from '@platformatic/db';

/**
 * Platformatic DB with one table. Its configuration is that of its documentation; a plugin compares the token.
 * On SQLite, it uses the defaults of SQLite: a rollback journal that is synced at every commit.
 */
const { DATABASE, STORE } = process.env;
const application = await create(import.meta.dirname, {
  $schema: 'https://schemas.platformatic.dev/@platformatic/db/3.67.0.json',
  server: { hostname: '127.0.0.1', port: Number(process.env.PORT), logger: { level: 'error' } },
  db: { connectionString: STORE === 'sqlite' ? `sqlite://${DATABASE}` : DATABASE, graphql: false },
  migrations: { dir: 'migrations', autoApply: true },
  plugins: { paths: [{ path: 'platformatic-token.cjs', encapsulate: false }] },
});
await application.init();
await application.start({ listen: true });

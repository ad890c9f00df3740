import { execFileSync } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
import type { Contestant } from './contestants';

/** Products of others that store plants over HTTP without own code: configurations in bench/products. */

const FOLDER = 'bench/products';

/** Installs the products, unless they are installed. Only the driver of SQLite needs its install script. */
export function installProducts(): void {
  const installed = `${FOLDER}/node_modules/.package-lock.json`;
  const lock = statSync(`${FOLDER}/package-lock.json`);
  if (existsSync(installed) && statSync(installed).mtimeMs > lock.mtimeMs) return;
  const npm = (...args: string[]): void => {
    execFileSync('npm', [...args, '--prefix', FOLDER], { stdio: ['ignore', 2, 2] });
  };
  npm('ci', '--ignore-scripts', '--no-audit', '--no-fund');
  npm('rebuild', 'sqlite3');
}

export function products(store: 'sqlite' | 'postgres'): Contestant[] {
  return [
    {
      name: 'Platformatic DB',
      program: `${FOLDER}/platformatic.mjs`,
      store,
      environment: { STORE: store },
      request: { path: '/plants?fields=name,tag' },
    },
    {
      name: 'Directus',
      program: `${FOLDER}/directus.mjs`,
      store,
      environment: { STORE: store },
      request: { path: '/items/plants?fields=name,tag', isInData: true },
      prepare: createCollection,
    },
  ];
}

/** Creates the collection of plants in Directus, without the log of activities that it keeps by default. */
async function createCollection(url: string, token: string): Promise<void> {
  const text = (field: string, is_nullable: boolean) => ({
    field,
    type: 'text',
    schema: { is_nullable },
  });
  const response = await fetch(`${url}/collections`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      collection: 'plants',
      meta: { accountability: null },
      schema: {},
      fields: [
        { field: 'id', type: 'bigInteger', schema: { is_primary_key: true } },
        text('name', false),
        text('tag', true),
      ],
    }),
  });
  if (!response.ok) throw new Error(`Directus: ${await response.text()}`);
}

import { join } from 'node:path';
import type { LoadOptions } from './load';

/** A server to measure: how to start it, and where it stores its plants. */
export interface Contestant {
  readonly name: string;
  /** The path of the program, relative to the project. */
  readonly program: string;
  readonly store: 'sqlite' | 'postgres';
  /** Environment variables in addition to PORT, TOKEN and DATABASE. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Whether it is our service, whose variables have other names. */
  readonly isOurs?: boolean;
  /** How its requests and responses differ from ours. */
  readonly request?: Pick<LoadOptions, 'path' | 'isInData'>;
  /** Prepares the server after its start. */
  readonly prepare?: (url: string, token: string) => Promise<void>;
}

/** Plain Fastify, by store. */
export const fastify = {
  sqlite: bareFastify('Fastify, one commit per request (WAL)', 'sqlite'),
  postgres: bareFastify('Fastify, one insert per request', 'postgres'),
};

/** Plain Fastify with a handwritten group commit, by store. Shows the cost of Nest and of our guarantees. */
export const batchingFastify = {
  sqlite: bareFastify('Fastify, group commit by hand (WAL)', 'sqlite', 'sqlite-batched'),
  postgres: bareFastify('Fastify, group commit by hand', 'postgres', 'postgres-batched'),
};

/** Our service, by store. */
export const plantStore = {
  sqlite: plantStoreIn('.', 'sqlite'),
  postgres: plantStoreIn('.', 'postgres'),
};

/** Creates the servers that most Nest users would write: TypeORM with `save()`, and with `insert()` on a tuned store. */
export function typeOrm(store: 'sqlite' | 'postgres'): Contestant[] {
  const journals = { save: ' (rollback journal)', insert: ' (WAL)' };
  return (['save', 'insert'] as const).map((write) => ({
    name: `Nest + TypeORM ${write}()${store === 'sqlite' ? journals[write] : ''}`,
    program: 'bench/dist/nest-typeorm.js',
    store,
    environment: { STORE: store, WRITE: write },
  }));
}

function bareFastify(name: string, store: Contestant['store'], kind: string = store): Contestant {
  return { name, program: 'bench/baselines/fastify.mjs', store, environment: { STORE: kind } };
}

/** @param folder the folder of a built copy of the project */
export function plantStoreIn(
  folder: string,
  store: 'sqlite' | 'postgres',
  name = 'Plant Store',
): Contestant {
  return { name, program: join(folder, 'dist/main.js'), store, isOurs: true };
}

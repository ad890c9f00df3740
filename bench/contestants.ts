/** A server under measurement: how to start it, and where it keeps its plants. */
export interface Contestant {
  readonly name: string;
  /** The program, relative to the project. */
  readonly program: string;
  readonly store: 'none' | 'sqlite' | 'postgres';
  /** Variables beside PORT, TOKEN and DATABASE. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Whether it is our service, which takes its settings by other names. */
  readonly ours?: boolean;
}

/** Node's own server, which reads, parses and echoes. */
export const nodeHttp: Contestant = {
  name: 'node:http that echoes',
  program: 'bench/baselines/node-http.mjs',
  store: 'none',
};

/** Bare Fastify, by store. */
export const fastify = {
  none: bareFastify('Fastify', 'none'),
  sqlite: bareFastify('Fastify, a commit a request', 'sqlite'),
  postgres: bareFastify('Fastify, an insert a request', 'postgres'),
};

/** Bare Fastify with a group commit written by hand, by store: what Nest and the promises cost. */
export const batchingFastify = {
  sqlite: bareFastify('Fastify, group commit by hand', 'sqlite', 'sqlite-batched'),
  postgres: bareFastify('Fastify, group commit by hand', 'postgres', 'postgres-batched'),
};

/** What Nest takes to validate a plant and throw it away. */
export const nest: Contestant = {
  name: 'Nest, ValidationPipe, no store',
  program: 'bench/dist/nest-validation-pipe.js',
  store: 'none',
};

/** Our service, by store. */
export const plantStore = {
  none: plantStoreOn('none', 'bench/memory-store.mjs'),
  sqlite: plantStoreOn('sqlite', 'dist/main.js'),
  postgres: plantStoreOn('postgres', 'dist/main.js'),
};

/** What most would write with Nest, on a store: with `save()`, and with `insert()` and a tuned store. */
export function typeOrm(store: 'sqlite' | 'postgres'): Contestant[] {
  return ['save', 'insert'].map((write) => ({
    name: `Nest + TypeORM ${write}()`,
    program: 'bench/dist/nest-typeorm.js',
    store,
    environment: { STORE: store, WRITE: write },
  }));
}

function bareFastify(name: string, store: Contestant['store'], kind: string = store): Contestant {
  return { name, program: 'bench/baselines/fastify.mjs', store, environment: { STORE: kind } };
}

function plantStoreOn(store: Contestant['store'], program: string): Contestant {
  return { name: 'Plant Store', program, store, ours: true };
}

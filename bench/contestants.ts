/** A server to measure: how to start it, and where it stores its plants. */
export interface Contestant {
  readonly name: string;
  /** The path of the program, relative to the project. */
  readonly program: string;
  readonly store: 'none' | 'sqlite' | 'postgres';
  /** Environment variables in addition to PORT, TOKEN and DATABASE. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Whether it is our service, whose variables have other names. */
  readonly isOurs?: boolean;
}

/** Node's own HTTP server, which parses the body and echoes it. */
export const nodeHttp: Contestant = {
  name: 'node:http that echoes',
  program: 'bench/baselines/node-http.mjs',
  store: 'none',
};

/** Plain Fastify, by store. */
export const fastify = {
  none: bareFastify('Fastify', 'none'),
  sqlite: bareFastify('Fastify, a commit a request', 'sqlite'),
  postgres: bareFastify('Fastify, an insert a request', 'postgres'),
};

/** Plain Fastify with a handwritten group commit, by store. Shows the cost of Nest and of our guarantees. */
export const batchingFastify = {
  sqlite: bareFastify('Fastify, group commit by hand', 'sqlite', 'sqlite-batched'),
  postgres: bareFastify('Fastify, group commit by hand', 'postgres', 'postgres-batched'),
};

/** Nest that validates a plant and discards it. */
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

/** What most Nest users would write: TypeORM with `save()`, and with `insert()` on a tuned store. */
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
  return { name: 'Plant Store', program, store, isOurs: true };
}

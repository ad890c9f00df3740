import { join } from 'node:path';

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

const typeorm = 'bench/dist/nest-typeorm.js';

/** In the order of the table. */
export const contestants: readonly Contestant[] = [
  { name: 'node:http, echo', program: 'bench/baselines/node-http.mjs', store: 'none' },
  fastify('Fastify, no store', 'none'),
  {
    name: 'Plant Store, no store',
    program: '.bench/bench/memory-store.js',
    store: 'none',
    ours: true,
  },
  fastify('Fastify, SQLite, a commit a request', 'sqlite'),
  nest('Nest + TypeORM save(), SQLite', 'sqlite', 'save'),
  nest('Nest + TypeORM insert(), SQLite, tuned', 'sqlite', 'insert'),
  {
    name: 'Plant Store, SQLite',
    program: 'dist/program/plant-store.js',
    store: 'sqlite',
    ours: true,
  },
  fastify('Fastify, PostgreSQL, an insert a request', 'postgres'),
  nest('Nest + TypeORM save(), PostgreSQL', 'postgres', 'save'),
  nest('Nest + TypeORM insert(), PostgreSQL', 'postgres', 'insert'),
  {
    name: 'Plant Store, PostgreSQL',
    program: 'dist/program/plant-store.js',
    store: 'postgres',
    ours: true,
  },
];

function fastify(name: string, store: Contestant['store']): Contestant {
  return { name, program: 'bench/baselines/fastify.mjs', store, environment: { STORE: store } };
}

function nest(name: string, store: 'sqlite' | 'postgres', write: string): Contestant {
  return { name, program: typeorm, store, environment: { STORE: store, WRITE: write } };
}

/** The path of a contestant's program. */
export function programOf({ program }: Contestant): string {
  return join(process.cwd(), program);
}

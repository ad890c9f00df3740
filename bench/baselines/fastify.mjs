import { DatabaseSync } from 'node:sqlite';
import bearerAuth from '@fastify/bearer-auth';
import Fastify from 'fastify';
import pg from 'pg';

/**
 * Plain Fastify as in its documentation: a schema compiled by Ajv, @fastify/bearer-auth, and a handler.
 * STORE is `sqlite` (one synced commit per request), `postgres` (one insert per request over pg's
 * pool of 10 connections), or one of these two with a handwritten group commit: `sqlite-batched` and
 * `postgres-batched`.
 */
const stores = {
  sqlite() {
    const database = openSqlite();
    const insert = database.prepare('INSERT INTO plants VALUES (?, ?, ?)');
    return ({ id, name, tag }) => insert.run(id, name, tag ?? null);
  },
  'sqlite-batched'() {
    const database = openSqlite();
    const insert = database.prepare('INSERT INTO plants VALUES (?, ?, ?)');
    return inBatches((plants) => {
      database.exec('BEGIN');
      try {
        for (const { id, name, tag } of plants) insert.run(id, name, tag ?? null);
        database.exec('COMMIT');
      } catch (error) {
        database.exec('ROLLBACK');
        throw error;
      }
    });
  },
  async 'postgres-batched'() {
    const pool = await openPostgres();
    const text = 'INSERT INTO plants SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[])';
    return inBatches((plants) => {
      const columns = ['id', 'name', 'tag'].map((property) =>
        plants.map((plant) => plant[property]),
      );
      return pool.query({ name: 'insert', text, values: columns });
    });
  },
  async postgres() {
    const pool = await openPostgres();
    const text = 'INSERT INTO plants VALUES ($1, $2, $3)';
    return ({ id, name, tag }) => pool.query({ name: 'insert', text, values: [id, name, tag] });
  },
};

function openSqlite() {
  const database = new DatabaseSync(process.env.DATABASE);
  database.exec('PRAGMA journal_mode = WAL');
  database.exec('PRAGMA synchronous = FULL');
  database.exec('CREATE TABLE plants (id INTEGER PRIMARY KEY, name TEXT NOT NULL, tag TEXT)');
  return database;
}

async function openPostgres() {
  const pool = new pg.Pool({ connectionString: process.env.DATABASE, max: 10 });
  await pool.query('CREATE TABLE plants (id bigint PRIMARY KEY, name text NOT NULL, tag text)');
  return pool;
}

/** Collects plants while a batch commits, and commits them as the next batch. A batch fails as a whole. */
function inBatches(commit) {
  let waiting = [];
  let isBusy = false;
  const run = async () => {
    while (waiting.length > 0) {
      const batch = waiting;
      waiting = [];
      try {
        await commit(batch.map(({ plant }) => plant));
        for (const { resolve } of batch) resolve();
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
      // A commit blocks this thread. Send responses and receive requests before the next one.
      await new Promise(setImmediate);
    }
    isBusy = false;
  };
  return (plant) =>
    new Promise((resolve, reject) => {
      waiting.push({ plant, resolve, reject });
      if (!isBusy) setImmediate(run);
      isBusy = true;
    });
}

const store = await stores[process.env.STORE]();
const fastify = Fastify();
await fastify.register(bearerAuth, { keys: new Set([process.env.TOKEN]) });
const text = { type: 'string' };
const plant = { type: 'object', properties: { name: text, tag: text }, required: ['name'] };
const newPlant = {
  ...plant,
  properties: { ...plant.properties, id: { type: 'integer' } },
  required: ['id', 'name'],
};
fastify.post(
  '/plants',
  { schema: { body: newPlant, response: { 200: plant } } },
  async ({ body }) => {
    await store(body);
    return { name: body.name, tag: body.tag };
  },
);
await fastify.listen({ port: Number(process.env.PORT), host: '127.0.0.1' });

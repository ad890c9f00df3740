import { DatabaseSync } from 'node:sqlite';
import bearerAuth from '@fastify/bearer-auth';
import Fastify from 'fastify';
import pg from 'pg';

/**
 * Bare Fastify as its documentation teaches: a schema that Ajv compiles, @fastify/bearer-auth, and a
 * handler. STORE: `none`, `sqlite` (one synced commit a request) or `postgres` (one insert a request
 * over pg's pool of 10).
 */
const stores = {
  none: () => () => undefined,
  sqlite() {
    const database = new DatabaseSync(process.env.DATABASE);
    database.exec('PRAGMA journal_mode = WAL');
    database.exec('PRAGMA synchronous = FULL');
    database.exec('CREATE TABLE plants (id INTEGER PRIMARY KEY, name TEXT NOT NULL, tag TEXT)');
    const insert = database.prepare('INSERT INTO plants VALUES (?, ?, ?)');
    return ({ id, name, tag }) => insert.run(id, name, tag ?? null);
  },
  async postgres() {
    const pool = new pg.Pool({ connectionString: process.env.DATABASE, max: 10 });
    await pool.query('CREATE TABLE plants (id bigint PRIMARY KEY, name text NOT NULL, tag text)');
    const text = 'INSERT INTO plants VALUES ($1, $2, $3)';
    return ({ id, name, tag }) => pool.query({ name: 'insert', text, values: [id, name, tag] });
  },
};

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

export { createFastifyAdapter } from './fastify-adapter';
export type { HttpOptions } from './http-server';
export { readTls } from './tls';

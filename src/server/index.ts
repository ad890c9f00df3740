export { createFastifyAdapter } from './fastify-adapter';
export { createHealthServer, type HttpOptions } from './http-server';
export { type Refusal, refusalChannel } from './refusal';
export type { Admission } from './request-listener';
export { readTls } from './tls';

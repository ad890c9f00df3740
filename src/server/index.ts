export { createFastifyAdapter, type HttpOptions } from './fastify-adapter';
export { TlsError } from './tls';

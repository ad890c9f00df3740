export { createFastifyAdapter, type HttpOptions } from './fastify-adapter';
export { readTls, TlsError } from './tls';

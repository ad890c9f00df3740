export { logAccess } from './access-log';
export { createLogger } from './logger';
export { NestLogger } from './nest-logger';
export { identifyFailedRequests, traceFields } from './request-context';

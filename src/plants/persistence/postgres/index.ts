export { isRetryable, isServerError, toOperatorError } from './postgres.errors';
export { PostgresHosts } from './postgres.hosts';
export { migrate } from './postgres.migrations';

/** The door for archives. The repository, which loads Nest, is not behind it. */
export { isRetryable, isServerError, toOperatorError } from './postgres.errors';
export { PostgresHosts } from './postgres.hosts';
export { migrate } from './postgres.migrations';

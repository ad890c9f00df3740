import { readEnvironment, type Settings } from '../config';

/**
 * The store that the environment names.
 *
 * @throws EnvironmentError when any variable is invalid
 */
export function readStore(environment: NodeJS.ProcessEnv): Settings['database'] {
  // A command serves nobody, so that it needs no tokens in production either.
  return readEnvironment({ ...environment, NODE_ENV: undefined }).database;
}

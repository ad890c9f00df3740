export type { DatabaseSettings } from './database';
export { addEnvFile } from './env-file';
export { EnvironmentError } from './environment.error';
export { readEnvironment, type Settings } from './environment';

export { addEnvFile } from './env-file';
export { EnvironmentError, readEnvironment, type Settings } from './environment';

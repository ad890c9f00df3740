export { EnvironmentError, readEnvironment, type Settings } from './environment';

export { type DatabaseSettings, readDatabase } from './database';
export { readEnvironment, type Settings } from './environment';
export { addEnvFile } from './variables';

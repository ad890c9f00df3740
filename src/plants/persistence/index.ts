export { PostgresPlantsRepository } from './postgres/postgres-plants.repository';
export { SqlitePlantsRepository } from './sqlite/sqlite-plants.repository';

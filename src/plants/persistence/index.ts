export { InMemoryPlantsRepository } from './in-memory-plants.repository';
export { openRepository } from './open-repository';
/** Without the driver: `config` reads URLs too. */
export { describeUnknownParameter, urlPerHost } from './postgres/postgres.url';

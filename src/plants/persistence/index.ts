export { InMemoryPlantsRepository } from './in-memory-plants.repository';
export { findNearMatch } from './near-match';
export { openRepository } from './open-repository';
export { describeUnknownParameter, urlPerHost } from './postgres/postgres.url';
export { StoreOpenError } from './store-open.error';

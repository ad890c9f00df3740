export { InMemoryPlantsRepository } from './in-memory-plants.repository';
export { openRepository } from './open-repository';
export { StoreOpenError } from './store-open.error';

/** Loads neither Nest nor a driver, until a store is opened. */
export { InMemoryPlantsRepository } from './in-memory-plants.repository';
export { findNearMatch } from './near-match';
export { openRepository } from './open-repository';
export { hasSameContent } from './plant-batches';
export { describeUrlFault, urlPerHost } from './postgres/postgres.url';
export { assertSupportedSchema } from './schema-version';
export { StoreOpenError } from './store-open.error';

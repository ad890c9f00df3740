export { InMemoryPlantsRepository } from './in-memory-plants.repository';
export { openRepository } from './open-repository';

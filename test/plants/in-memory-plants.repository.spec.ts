import { InMemoryPlantsRepository, type Plant } from '../../src/plants';
import { describeRepository } from './repository.contract';

describeRepository('the repository in memory', () => {
  let repository = new InMemoryPlantsRepository();
  return Promise.resolve({
    get repository() {
      return repository;
    },
    get second() {
      return repository;
    },
    plants: (): Promise<Plant[]> => repository.page(undefined, Infinity),
    removePlants() {
      repository = new InMemoryPlantsRepository();
    },
    close: () => Promise.resolve(),
  });
});

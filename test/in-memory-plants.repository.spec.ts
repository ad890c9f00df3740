import { InMemoryPlantsRepository, type Plant } from '../src/plants';
import { describeRepository } from './repository.contract';

describeRepository('the repository in memory', () => {
  const repository = new InMemoryPlantsRepository();
  return Promise.resolve({
    repository,
    second: repository,
    plants: (): Promise<Plant[]> => repository.page(undefined, Infinity),
    close: () => Promise.resolve(),
  });
});

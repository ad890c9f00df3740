import { Injectable } from '@nestjs/common';
import { Histogram } from '@prometheus-io/client';
import { PlantsRepository } from '../../../src/plants';

@Injectable()
export class PlantsMetrics {
  readonly batchSize = new Histogram({ name: 'plants_batch_size', help: 'Plants per commit' });
  readonly commitSeconds = new Histogram({ name: 'plants_commit_seconds', help: 'Commit time' });

  constructor(plants: PlantsRepository) {
    plants.observeBatches(({ size, duration }) => {
      this.batchSize.observe(size);
      this.commitSeconds.observe(duration / 1000);
    });
  }
}

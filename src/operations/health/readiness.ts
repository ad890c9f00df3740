import { Injectable, type OnModuleInit } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { PlantsRepository } from '../../plants';

/** Whether the service wants traffic: what a balancer asks. */
@Injectable()
export class Readiness implements OnModuleInit {
  private plants: PlantsRepository | undefined;
  private draining = false;

  constructor(private readonly moduleRef: ModuleRef) {}

  onModuleInit(): void {
    this.plants = this.moduleRef.get(PlantsRepository, { strict: false });
  }

  /** False while starting, once draining, and while the store takes no plants. Costs nothing. */
  isReady(): boolean {
    return !this.draining && (this.plants?.isReady() ?? false);
  }

  /** Says from now on that the service is not ready, so that balancers turn elsewhere. */
  drain(): void {
    this.draining = true;
  }
}

import { Injectable, type OnModuleInit } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { PlantsRepository } from '../../plants';

/** Tells load balancers whether the service is ready for traffic. */
@Injectable()
export class Readiness implements OnModuleInit {
  private plants: PlantsRepository | undefined;
  private draining = false;

  constructor(private readonly moduleRef: ModuleRef) {}

  onModuleInit(): void {
    this.plants = this.moduleRef.get(PlantsRepository, { strict: false });
  }

  /** False while starting or draining, and while the store takes no plants. Answers from memory. */
  isReady(): boolean {
    return !this.draining && (this.plants?.isReady() ?? false);
  }

  /** Reports not ready from now on, so that load balancers send no more traffic. */
  drain(): void {
    this.draining = true;
  }
}

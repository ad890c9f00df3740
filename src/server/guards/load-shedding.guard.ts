import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { UnavailableError } from '../../plants/errors/errors';
import { InsertsPlants } from '../../plants/http/request';
import { PlantsRepository } from '../../plants/plants.repository';

/**
 * Rejects requests to insert plants with 503 while the queue of the store is full, before their token and body are read.
 * Other routes, such as one that reads plants, do not wait in the queue.
 */
@Injectable()
export class LoadSheddingGuard implements CanActivate {
  // Created once, so that thousands of rejections per second do not each capture a stack trace.
  private readonly fullError = new UnavailableError({
    cause: new Error('overloaded: too many plants are waiting to be stored'),
  });

  constructor(
    private readonly plants: PlantsRepository,
    private readonly reflector: Reflector,
  ) {}

  canActivate(context: ExecutionContext): boolean {
    if (this.plants.canAccept()) return true;
    if (!this.reflector.get(InsertsPlants, context.getHandler())) return true;
    throw this.fullError;
  }
}

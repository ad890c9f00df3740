import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { UnavailableError } from '../../plants/errors/errors';
import { PlantsRepository } from '../../plants/plants.repository';

/** `@SkipAdmission(true)` exempts the routes of a controller from the guards for load and rate. */
export const SkipAdmission = Reflector.createDecorator<boolean>();

/** Rejects requests with 503 while the queue is full, before their token and body are read. */
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
    if (this.plants.canAccept() || this.reflector.get(SkipAdmission, context.getClass()))
      return true;
    throw this.fullError;
  }
}

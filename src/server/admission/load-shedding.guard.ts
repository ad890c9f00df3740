import {
  type CanActivate,
  type ExecutionContext,
  Injectable,
  type OnApplicationShutdown,
} from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { UnavailableError } from '../../plants/errors/errors';
import { PlantsRepository } from '../../plants/plants.repository';
import { MetricsController } from '../watch/metrics.controller';

/**
 * Creations that may be in progress while the event loop is late. Not zero: refusals alone can keep
 * the loop late, and a service that refused everything would then answer no creation.
 */
const LATE_LIMIT = 2048;

/** Milliseconds between two looks at the event loop. */
const INTERVAL = 20;

/** How late a look must be for the event loop to count as late, in milliseconds. */
const LATE = 500;

/**
 * Refuses creations with 503 while too many plants wait, or while the event loop is late and too many
 * creations are in progress. It is the first guard, so neither the token nor the body of a refused
 * creation is read.
 */
@Injectable()
export class LoadSheddingGuard implements CanActivate, OnApplicationShutdown {
  private isLate = false;
  private lookedAt = performance.now();
  private readonly looking = setInterval(() => {
    const now = performance.now();
    this.isLate = now - this.lookedAt > INTERVAL + LATE;
    this.lookedAt = now;
  }, INTERVAL).unref();

  // Created once, so that thousands of refusals a second do not each capture a stack trace.
  private readonly late = new UnavailableError({
    cause: new Error('overloaded: the event loop is delayed'),
  });
  private readonly full = new UnavailableError({
    cause: new Error('overloaded: too many plants are waiting to be stored'),
  });

  private inProgress = 0;
  private readonly release = (): number => this.inProgress--;

  constructor(private readonly plants: PlantsRepository) {}

  /** @throws UnavailableError when there is no room for the creation */
  canActivate(context: ExecutionContext): boolean {
    if (context.getClass() === MetricsController) return true;
    if (this.plants.isFull()) throw this.full;
    if (this.inProgress >= LATE_LIMIT && this.isLate) throw this.late;
    this.inProgress++;
    context.switchToHttp().getResponse<FastifyReply>().raw.on('close', this.release);
    return true;
  }

  onApplicationShutdown(): void {
    clearInterval(this.looking);
  }
}

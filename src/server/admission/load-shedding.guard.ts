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
 * The number of create requests that may be in progress while the event loop is delayed. Not zero, because
 * rejections alone can keep the loop delayed. A service that rejected everything would then store nothing.
 */
const MAX_IN_PROGRESS_WHEN_DELAYED = 2048;

/** The interval of the timer that measures the delay of the event loop. */
const CHECK_INTERVAL_MS = 20;

/** The delay of that timer from which the event loop counts as delayed. */
const EVENT_LOOP_DELAY_LIMIT_MS = 500;

/**
 * Rejects create requests with 503 while the queue is full, or while the event loop is delayed and too
 * many create requests are in progress. It is the first guard, so neither the token nor the body of a
 * rejected request is read.
 */
@Injectable()
export class LoadSheddingGuard implements CanActivate, OnApplicationShutdown {
  private isDelayed = false;
  private lastCheckAt = performance.now();
  private readonly delayTimer = setInterval(() => {
    const now = performance.now();
    this.isDelayed = now - this.lastCheckAt > CHECK_INTERVAL_MS + EVENT_LOOP_DELAY_LIMIT_MS;
    this.lastCheckAt = now;
  }, CHECK_INTERVAL_MS).unref();

  // Created once, so that thousands of rejections per second do not each capture a stack trace.
  private readonly delayedError = new UnavailableError({
    cause: new Error('overloaded: the event loop is delayed'),
  });
  private readonly fullError = new UnavailableError({
    cause: new Error('overloaded: too many plants are waiting to be stored'),
  });

  private inProgress = 0;
  private readonly release = (): number => this.inProgress--;

  constructor(private readonly plants: PlantsRepository) {}

  /** @throws UnavailableError when the service is overloaded */
  canActivate(context: ExecutionContext): boolean {
    if (context.getClass() === MetricsController) return true;
    if (this.plants.isFull()) throw this.fullError;
    if (this.isDelayed && this.inProgress >= MAX_IN_PROGRESS_WHEN_DELAYED) throw this.delayedError;
    this.inProgress++;
    context.switchToHttp().getResponse<FastifyReply>().raw.on('close', this.release);
    return true;
  }

  onApplicationShutdown(): void {
    clearInterval(this.delayTimer);
  }
}

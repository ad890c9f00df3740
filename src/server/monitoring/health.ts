import { Injectable } from '@nestjs/common';
import type { FastifyInstance } from 'fastify';
import { UnavailableError } from '../../plants/errors/errors';
import { PlantsRepository } from '../../plants/plants.repository';

/** Tells load balancers whether the service is ready for traffic. */
@Injectable()
export class Readiness {
  private isDraining = false;

  constructor(private readonly plants: PlantsRepository) {}

  /** False while draining, and while the store is recovering. */
  isReady(): boolean {
    return !this.isDraining && this.plants.isReady();
  }

  /** Makes the service not ready from now on, so that load balancers send no more traffic. */
  drain(): void {
    this.isDraining = true;
  }
}

/**
 * Serves `GET /health/live` and `GET /health/ready`, public because Nest's guards do not apply to Fastify routes. They
 * do no I/O, so frequent probes are cheap.
 */
export function serveHealth(instance: FastifyInstance, readiness: Readiness): void {
  const options = { config: { isOnHealthPort: true } };
  const ok = { status: 'ok' };
  const unavailable = new UnavailableError();
  instance.get('/health/live', options, (_request, reply) => reply.send(ok));
  instance.get('/health/ready', options, (_request, reply) => {
    if (readiness.isReady()) return reply.send(ok);
    // Not thrown, because every probe would then be logged and counted as an error.
    return reply.code(unavailable.getStatus()).headers(unavailable.headers).send(unavailable.body);
  });
}

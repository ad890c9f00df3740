import { Injectable } from '@nestjs/common';
import type { FastifyInstance } from 'fastify';
import { UnavailableError } from '../../plants/errors/errors';
import { PlantsRepository } from '../../plants/plants.repository';

/** Tells load balancers whether the service is ready for traffic. */
@Injectable()
export class Readiness {
  private draining = false;

  constructor(private readonly plants: PlantsRepository) {}

  /** False while draining, and while the store takes no plants. Answers from memory. */
  isReady(): boolean {
    return !this.draining && this.plants.isReady();
  }

  /** Reports not ready from now on, so that load balancers send no more traffic. */
  drain(): void {
    this.draining = true;
  }
}

/**
 * Serves `GET /health/live` and `GET /health/ready`, public and without detail. They are routes of
 * Fastify, to which Nest's guards do not apply. They answer from memory, so frequent probes are cheap.
 */
export function serveHealth(instance: FastifyInstance, readiness: Readiness): void {
  const ok = { status: 'ok' };
  const unavailable = new UnavailableError();
  instance.get('/health/live', (_request, reply) => reply.send(ok));
  instance.get('/health/ready', (_request, reply) => {
    if (readiness.isReady()) return reply.send(ok);
    // Not thrown: it would be logged and counted as an error at each probe.
    return reply.code(unavailable.getStatus()).headers(unavailable.headers).send(unavailable.body);
  });
}

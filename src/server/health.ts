import { Injectable, type OnModuleInit } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { UnavailableError, PlantsRepository } from '../plants';

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

const OK = JSON.stringify({ status: 'ok' });

/**
 * Serves `GET /health/live` and `GET /health/ready`, public and without detail. They are routes of
 * Fastify, to which Nest's guards do not apply. They answer from memory, so frequent probes are cheap.
 */
export function serveHealth(instance: FastifyInstance, readiness: Readiness): void {
  const unavailable = new UnavailableError();

  instance.get('/health/live', (_request, reply) => answer(reply, OK));
  instance.get('/health/ready', (_request, reply) => {
    if (readiness.isReady()) return answer(reply, OK);
    reply.code(unavailable.getStatus()).headers(unavailable.headers);
    return answer(reply, JSON.stringify(unavailable.body));
  });
}

function answer(reply: FastifyReply, body: string): FastifyReply {
  return reply.type('application/json; charset=utf-8').send(body);
}

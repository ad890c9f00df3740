import { promisify } from 'node:util';
import { Injectable, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import type { FastifyInstance } from 'fastify';
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from '@prometheus-io/client';
import { errorCatalogue, PlantsRepository } from '../plants';
import {
  type BatchEvent,
  batchChannel,
  type CatalogueEntry,
  errorChannel,
  type ErrorEvent,
} from '../plants/program';
import { isCreation, successOf } from './creation';
import { packageVersion } from './package-version';
import { type Refusal, refusalChannel } from './refusal';

/** Upper bounds of the buckets of durations, in seconds. */
const DURATIONS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** The labels of requests that reached no route. A client must not choose a label. */
const UNMATCHED = { method: 'any', route: 'none' };

/** Default metrics whose names break Prometheus' own rules: gauges as totals, and types in a name. */
const MISNAMED = /^nodejs_(active_\w+_total|eventloop_utilization_\w+)$/;

type Duration = Histogram.Internal<'method' | 'route' | 'status'>;

/** The metrics of the service, for Prometheus. */
@Injectable()
export class Metrics implements OnModuleInit, OnApplicationShutdown {
  private readonly registry = new Registry();
  private readonly registers = [this.registry];
  private readonly creations = new Counter({
    name: 'plant_store_creations_total',
    help: 'Creations by outcome.',
    labelNames: ['outcome'],
    registers: this.registers,
  });
  private readonly errors = new Counter({
    name: 'plant_store_errors_total',
    help: 'Errors answered, by number.',
    labelNames: ['error'],
    registers: this.registers,
  });
  private readonly requestDuration = new Histogram({
    name: 'http_request_duration_seconds',
    help: 'Seconds from receiving the head of a request to sending its answer.',
    labelNames: ['method', 'route', 'status'],
    buckets: DURATIONS,
    registers: this.registers,
  });
  private readonly batchSize = new Histogram({
    name: 'plant_store_batch_size',
    help: 'Plants handed to the database in one commit.',
    buckets: [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024],
    registers: this.registers,
  });
  private readonly commitDuration = new Histogram({
    name: 'plant_store_commit_duration_seconds',
    help: 'How long a commit took, the sync to the disk included, in seconds.',
    buckets: DURATIONS,
    registers: this.registers,
  });

  private readonly durations = new Map<string, Duration>();

  constructor(private readonly moduleRef: ModuleRef) {
    // It samples for metrics that are removed below: seldom, then.
    collectDefaultMetrics({ register: this.registry, eventLoopUtilizationTimeout: 3_600_000 });
    for (const { name } of this.registry.getMetricsAsArray()) {
      if (MISNAMED.test(name)) this.registry.removeSingleMetric(name);
    }
    // A counter that begins at its first event has no increase from zero.
    for (const { error } of Object.values(errorCatalogue)) this.errors.inc({ error }, 0);
    const outcomes = Object.values<CatalogueEntry>(errorCatalogue).map(({ outcome }) => outcome);
    for (const outcome of ['created', 'replayed', ...outcomes]) {
      if (outcome !== undefined) this.creations.inc({ outcome }, 0);
    }
  }

  onModuleInit(): void {
    const plants = this.moduleRef.get(PlantsRepository, { strict: false });
    this.gauge('plant_store_queue_length', 'Plants that wait to be handed to the database.', () =>
      plants.queueLength(),
    );
    this.gauge('plant_store_ready', 'Whether the store takes plants: 1 or 0.', () =>
      Number(plants.isReady()),
    );
    new Gauge({
      name: 'plant_store_build_info',
      help: 'The version of the service, as a label; always 1.',
      labelNames: ['version'],
      registers: this.registers,
    }).set({ version: packageVersion() }, 1);

    errorChannel.subscribe(this.countError);
    batchChannel.subscribe(this.countBatch);
    refusalChannel.subscribe(this.countRefusal);
  }

  onApplicationShutdown(): void {
    errorChannel.unsubscribe(this.countError);
    batchChannel.unsubscribe(this.countBatch);
    refusalChannel.unsubscribe(this.countRefusal);
  }

  /** Measures every answered request, and counts connections. Call it before routes are added. */
  measure(instance: FastifyInstance): void {
    instance.addHook('onResponse', (request, reply, done) => {
      const { method, is404 } = request;
      const { url: route } = request.routeOptions;
      const labels = is404 || route === undefined ? UNMATCHED : { method, route };
      const { statusCode: status, elapsedTime } = reply;
      if (status === 200 && isCreation(request.raw)) {
        this.creations.inc({ outcome: successOf(reply) });
      }
      this.durationOf(labels, status).observe(elapsedTime / 1000);
      done();
    });
    const connections = promisify(instance.server.getConnections.bind(instance.server));
    this.gauge('http_open_connections', 'Connections that are open.', connections);
    const dropped = new Counter({
      name: 'http_dropped_connections_total',
      help: 'New connections closed because too many were open.',
      registers: this.registers,
    });
    instance.server.on('drop', () => {
      dropped.inc();
    });
  }

  /** Keeps what is observed often: finding it by its labels takes longer than counting. */
  private durationOf(labels: { method: string; route: string }, status: number): Duration {
    const key = `${labels.method} ${labels.route} ${status}`;
    let duration = this.durations.get(key);
    if (duration === undefined) {
      duration = this.requestDuration.labels({ ...labels, status });
      this.durations.set(key, duration);
    }
    return duration;
  }

  /** All metrics in the Prometheus text format, version 0.0.4. */
  text(): Promise<string> {
    return this.registry.metrics();
  }

  /** Adds a gauge that is read whenever the metrics are. */
  private gauge(name: string, help: string, read: () => number | Promise<number>): void {
    new Gauge({
      name,
      help,
      registers: this.registers,
      async collect() {
        this.set(await read());
      },
    });
  }

  private readonly countError = (message: unknown): void => {
    const { error: failure, request } = message as ErrorEvent;
    const { error, outcome } = failure;
    this.errors.inc({ error });
    if (outcome !== undefined && request && isCreation(request)) this.creations.inc({ outcome });
  };

  private readonly countRefusal = (message: unknown): void => {
    this.requestDuration.observe({ ...UNMATCHED, status: (message as Refusal).status }, 0);
  };

  private readonly countBatch = (message: unknown): void => {
    const { items, duration } = message as BatchEvent;
    this.batchSize.observe(items);
    this.commitDuration.observe(duration / 1000);
  };
}

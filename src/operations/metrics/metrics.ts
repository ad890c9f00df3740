import { promisify } from 'node:util';
import { Injectable, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import type { FastifyInstance } from 'fastify';
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import { errorCatalogue, errorChannel, type ErrorKind, type PlantStoreError } from '../../errors';
import {
  type BatchEvent,
  batchChannel,
  createPlantRoute,
  IDEMPOTENT_REPLAYED,
  PlantsRepository,
} from '../../plants';
import { durationBuckets } from './duration-series';
import { packageVersion } from '../../package-version';
import { RequestDurations } from './request-durations';

/** The errors that count as each outcome of a failed creation. */
const failedOutcomes: Readonly<Record<string, readonly ErrorKind[]>> = {
  invalid: [
    ...(['notJson', 'invalidPlant', 'unsupportedMediaType', 'bodyTooLarge'] as const),
    'invalidIdempotencyKey',
  ],
  taken: ['idTaken', 'idempotencyKeyReused'],
  refused: ['unavailable'],
  unknown: ['outcomeUnknown'],
};

/**
 * The metrics of the service, for Prometheus. A request only increments counters; the rest is
 * computed when the metrics are read.
 */
@Injectable()
export class Metrics implements OnModuleInit, OnApplicationShutdown {
  private readonly registry = new Registry();
  private readonly requests = new RequestDurations();
  /** How often each error was answered, by number. */
  private readonly errors = new Map<number, number>(
    Object.values(errorCatalogue).map(({ error }) => [error, 0]),
  );
  /** How many creations were answered as repetitions. */
  private replays = 0;
  private readonly batchSize = new Histogram({
    name: 'plant_store_batch_size',
    help: 'Plants handed to the database in one commit.',
    buckets: [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024],
    registers: [this.registry],
  });
  private readonly commitDuration = new Histogram({
    name: 'plant_store_commit_duration_seconds',
    help: 'How long a commit took, the sync to the disk included, in seconds.',
    buckets: [...durationBuckets],
    registers: [this.registry],
  });

  constructor(private readonly moduleRef: ModuleRef) {
    collectDefaultMetrics({ register: this.registry });
    this.requests.register(this.registry);
  }

  onModuleInit(): void {
    const plants = this.moduleRef.get(PlantsRepository, { strict: false });
    const registers = [this.registry];
    const { requests, errors } = this;
    const replays = (): number => this.replays;

    new Counter({
      name: 'plant_store_creations_total',
      help: 'Creations by outcome.',
      labelNames: ['outcome'],
      registers,
      collect() {
        this.reset();
        this.inc(
          { outcome: 'created' },
          requests.count(createPlantRoute.method, createPlantRoute.url, 200) - replays(),
        );
        this.inc({ outcome: 'replayed' }, replays());
        for (const [outcome, kinds] of Object.entries(failedOutcomes)) {
          const counts = kinds.map((kind) => errors.get(errorCatalogue[kind].error) ?? 0);
          this.inc(
            { outcome },
            counts.reduce((sum, count) => sum + count),
          );
        }
      },
    });
    new Counter({
      name: 'plant_store_errors_total',
      help: 'Errors answered, by number.',
      labelNames: ['error'],
      registers,
      collect() {
        this.reset();
        for (const [error, count] of errors) this.inc({ error }, count);
      },
    });
    new Gauge({
      name: 'plant_store_queue_length',
      help: 'Plants that wait to be handed to the database.',
      registers,
      collect() {
        this.set(plants.queueLength());
      },
    });
    new Gauge({
      name: 'plant_store_ready',
      help: 'Whether the store takes plants: 1 or 0.',
      registers,
      collect() {
        this.set(Number(plants.isReady()));
      },
    });
    new Gauge({
      name: 'plant_store_build_info',
      help: 'The version of the service, as a label; always 1.',
      labelNames: ['version'],
      registers,
    }).set({ version: packageVersion() }, 1);

    errorChannel.subscribe(this.countError);
    batchChannel.subscribe(this.countBatch);
  }

  onApplicationShutdown(): void {
    errorChannel.unsubscribe(this.countError);
    batchChannel.unsubscribe(this.countBatch);
  }

  /** Measures every answered request, and counts connections. Call it before routes are added. */
  measure(instance: FastifyInstance): void {
    this.requests.measure(instance);
    // In lower case, as Fastify keeps it: V8 would make and look up another text for each request.
    const field = IDEMPOTENT_REPLAYED.toLowerCase();
    // When the duration is counted, so that "created" never falls.
    instance.addHook('onResponse', (_request, reply, done) => {
      if (reply.statusCode === 200 && reply.hasHeader(field)) this.replays++;
      done();
    });
    const connections = promisify(instance.server.getConnections.bind(instance.server));
    new Gauge({
      name: 'http_open_connections',
      help: 'Connections that are open.',
      registers: [this.registry],
      async collect() {
        this.set(await connections());
      },
    });
    const dropped = new Counter({
      name: 'http_dropped_connections_total',
      help: 'New connections closed because too many were open.',
      registers: [this.registry],
    });
    instance.server.on('drop', () => {
      dropped.inc();
    });
  }

  /** All metrics in the Prometheus text format, version 0.0.4. */
  text(): Promise<string> {
    return this.registry.metrics();
  }

  private readonly countError = (message: unknown): void => {
    const { error } = message as PlantStoreError;
    this.errors.set(error, (this.errors.get(error) ?? 0) + 1);
  };

  private readonly countBatch = (message: unknown): void => {
    const { items, duration } = message as BatchEvent;
    this.batchSize.observe(items);
    this.commitDuration.observe(duration / 1000);
  };
}

import { promisify } from 'node:util';
import { Controller, Get, Header } from '@nestjs/common';
import { RouteConfig } from '@nestjs/platform-fastify';
import { ApiExcludeController } from '@nestjs/swagger';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from '@prometheus-io/client';
import { RequiredScope } from '../../plants/auth/bearer.guard';
import type { TokenVerifier } from '../../plants/auth/token-verifier';
import {
  type CatalogueEntry,
  errorCatalogue,
  type PlantStoreError,
} from '../../plants/errors/errors';
import type { PlantsRepository } from '../../plants/plants.repository';
import type { RequestNotes } from '../../plants/http/request';
import { SkipRateLimit } from '../guards/rate-limit.guard';

/** The upper bounds of the buckets of both durations. */
const DURATION_BUCKETS_SECONDS = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
];

/** The metrics of the service, for Prometheus. Two applications in one process have separate ones. */
export class Metrics {
  readonly registry = new Registry();
  private readonly registers = [this.registry];
  private readonly creations = new Counter({
    name: 'plant_store_creations_total',
    help: 'Create requests by outcome.',
    labelNames: ['outcome'],
    registers: this.registers,
  });
  private readonly errors = new Counter({
    name: 'plant_store_errors_total',
    help: 'Error responses by error number.',
    labelNames: ['error'],
    registers: this.registers,
  });
  private readonly requestDuration = new Histogram({
    name: 'http_request_duration_seconds',
    help: 'Time from receiving the request headers to determining the response, in seconds.',
    labelNames: ['method', 'route', 'status'],
    buckets: DURATION_BUCKETS_SECONDS,
    registers: this.registers,
  });
  private readonly batchSize = new Histogram({
    name: 'plant_store_batch_size',
    help: 'Number of plants per commit.',
    buckets: [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024],
    registers: this.registers,
  });
  private readonly commitDuration = new Histogram({
    name: 'plant_store_commit_duration_seconds',
    help: 'Duration of a commit, including the sync to disk, in seconds.',
    buckets: DURATION_BUCKETS_SECONDS,
    registers: this.registers,
  });
  private readonly droppedConnections = new Counter({
    name: 'http_dropped_connections_total',
    help: 'Connections closed because MAX_CONNECTIONS or the limit of HEALTH_PORT was reached.',
    registers: this.registers,
  });

  constructor() {
    collectDefaultMetrics({ register: this.registry });
    // Start at 0, because increase() misses the first event of a counter that starts at 1.
    for (const { error, outcome } of Object.values<CatalogueEntry>(errorCatalogue)) {
      this.errors.inc({ error }, 0);
      if (outcome !== undefined) this.creations.inc({ outcome }, 0);
    }
    for (const outcome of ['created', 'replayed', 'rejected']) this.creations.inc({ outcome }, 0);
  }

  /** Counts an error. The response on a socket has no request. */
  countError({ error }: PlantStoreError): void {
    this.errors.inc({ error });
  }

  /** Counts a connection that was closed because of a limit. */
  countDroppedConnection(): void {
    this.droppedConnections.inc();
  }

  /** @param duration milliseconds from the request headers to the response */
  countRequest(
    { method, is404, routeOptions }: FastifyRequest,
    status: number,
    duration: number,
    { outcome, failure }: RequestNotes,
  ): void {
    // Without a route, the method and the path are the client's choice.
    const labels = is404 ? { method: 'any', route: 'none' } : { method, route: routeOptions.url };
    this.requestDuration.observe({ ...labels, status }, duration / 1000);
    if (outcome !== undefined) this.creations.inc({ outcome });
    if (failure) this.countError(failure);
  }

  /** Adds the metrics of the connections, the store and the tokens, once these exist. */
  observe({ server }: FastifyInstance, plants: PlantsRepository, verifier: TokenVerifier): void {
    plants.observeBatches(({ size, duration }) => {
      this.batchSize.observe(size);
      this.commitDuration.observe(duration / 1000);
    });
    server.on('drop', () => {
      this.countDroppedConnection();
    });
    const countConnections = promisify(server.getConnections.bind(server));
    this.addGauge('http_open_connections', 'Open connections.', countConnections);
    this.addGauge('plant_store_queue_length', 'Plants waiting to be sent to the database.', () =>
      plants.queueLength(),
    );
    this.addGauge('plant_store_log_bytes', 'Size of the write-ahead log of SQLite.', () =>
      plants.logBytes(),
    );
    this.addGauge('plant_store_ready', '1 if the store is working, 0 if it is recovering.', () =>
      Number(plants.isReady()),
    );
    this.addGauge('plant_store_token_file_valid', '0 if AUTH_TOKENS_FILE is invalid.', () =>
      Number(verifier.isFileValid()),
    );
    new Gauge({
      name: 'plant_store_issuer_keys_valid',
      help: '0 if the keys of an issuer could not be fetched.',
      labelNames: ['issuer'],
      registers: this.registers,
      collect() {
        for (const [issuer, { isValid }] of verifier.issuerKeys) {
          this.set({ issuer: String(issuer) }, Number(isValid));
        }
      },
    });
  }

  /** @param read called at every scrape */
  private addGauge(name: string, help: string, read: () => number | Promise<number>): void {
    new Gauge({
      name,
      help,
      registers: this.registers,
      async collect() {
        this.set(await read());
      },
    });
  }
}

/**
 * `GET /metrics`, in the Prometheus text format 0.0.4. It has its own scope. Its requests are not limited, so that
 * monitoring works while a caller with the same token exceeds its quota.
 */
@Controller('metrics')
@SkipRateLimit(true)
@ApiExcludeController()
export class MetricsController {
  constructor(private readonly metrics: Metrics) {}

  @Get()
  @RequiredScope('metrics')
  @RouteConfig({ isOnHealthPort: true })
  @Header('Content-Type', Registry.PROMETHEUS_CONTENT_TYPE)
  read(): Promise<string> {
    return this.metrics.registry.metrics();
  }
}

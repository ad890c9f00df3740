import { Injectable, Logger } from '@nestjs/common';
import type { FastifyInstance } from 'fastify';
import { OperatorError } from '../../errors';
import type * as openTelemetry from './open-telemetry';

/**
 * Whether an environment enables traces, by the variables of the OpenTelemetry specification. Unlike
 * there, no traces are exported by default: an exporter or an endpoint must be set.
 */
export function isTracingEnabled(environment: NodeJS.ProcessEnv): boolean {
  const value = (name: string): string => environment[name]?.trim() ?? '';
  if (value('OTEL_SDK_DISABLED').toLowerCase() === 'true') return false;
  const exporters = value('OTEL_TRACES_EXPORTER');
  if (exporters !== '') return !exporters.split(',').some((name) => name.trim() === 'none');
  return (
    value('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT') !== '' ||
    value('OTEL_EXPORTER_OTLP_ENDPOINT') !== ''
  );
}

/** Traces the service. Loads OpenTelemetry only when it is started. */
@Injectable()
export class Tracing {
  private readonly logger = new Logger('OpenTelemetry');
  private sdk: openTelemetry.Sdk | undefined;

  /**
   * Traces every request until the process ends. Call it before routes are added.
   *
   * @throws OperatorError when OpenTelemetry is not installed
   */
  start(instance: FastifyInstance): void {
    const { startSdk, traceRequests } = load();
    this.sdk = startSdk(this.logger);
    traceRequests(instance);
  }

  /**
   * Sends the remaining spans. At the limit it ends the process, which the exporter's retries would
   * keep alive.
   *
   * @param limit milliseconds
   */
  stop(limit: number): void {
    if (this.sdk === undefined) return;
    setTimeout(() => {
      this.logger.warn(`The last spans could not be sent within ${limit} ms.`);
      process.exit();
    }, limit).unref();
    this.sdk.shutdown().catch((error: unknown) => {
      this.logger.warn(`The last spans could not be sent: ${String(error)}`);
    });
  }
}

function load(): typeof openTelemetry {
  try {
    return require('./open-telemetry') as typeof openTelemetry;
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'MODULE_NOT_FOUND') throw cause;
    throw new OperatorError(
      'The OTEL_* variables enable traces, but OpenTelemetry is not installed. Run: npm install @opentelemetry/api @opentelemetry/resources @opentelemetry/sdk-node',
      { cause },
    );
  }
}

import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Metric, Registry } from 'prom-client';
import { DurationSeries, type Sample } from './duration-series';

const NAME = 'http_request_duration_seconds';

/** The series of one route, by status code. */
type ByStatus = (DurationSeries | undefined)[];

/**
 * The duration of requests by method, route and status. The number of series is bounded: a route is a
 * registered pattern, and all requests that match none count as one route.
 */
export class RequestDurations {
  private readonly routes: { method: string; route: string; byStatus: ByStatus }[] = [];
  private readonly unmatched = this.addRoute('any', 'none');

  /** Measures every answered request. Call it before routes are added. */
  measure(instance: FastifyInstance): void {
    instance.addHook('onRoute', (options) => {
      const byStatus = this.addRoute(String(options.method), options.url);
      options.onResponse = [observeInto(byStatus), options.onResponse ?? []].flat();
    });
    instance.addHook('onResponse', (request, reply, done) => {
      if (request.is404) observe(this.unmatched, reply);
      done();
    });
  }

  /** How many requests of a route were answered with a status. */
  count(method: string, route: string, status: number): number {
    return this.routes
      .filter((each) => each.method === method && each.route === route)
      .reduce((sum, { byStatus }) => sum + (byStatus[status]?.count ?? 0), 0);
  }

  /** Adds the histogram to a registry. */
  register(registry: Registry): void {
    const metric = {
      name: NAME,
      get: () =>
        Promise.resolve({
          name: NAME,
          help: 'Seconds from receiving the head of a request to sending its answer.',
          type: 'histogram',
          values: this.samples(),
        }),
    };
    // A registry uses only these members, but its type demands one of prom-client's classes.
    registry.registerMetric(metric as unknown as Metric);
  }

  private addRoute(method: string, route: string): ByStatus {
    const byStatus: ByStatus = [];
    this.routes.push({ method, route, byStatus });
    return byStatus;
  }

  private samples(): Sample[] {
    return this.routes.flatMap(({ method, route, byStatus }) =>
      byStatus.flatMap(
        (series, status) => series?.samples(NAME, { method, route, status: String(status) }) ?? [],
      ),
    );
  }
}

function observeInto(byStatus: ByStatus) {
  return (_request: FastifyRequest, reply: FastifyReply, done: () => void): void => {
    observe(byStatus, reply);
    done();
  };
}

function observe(byStatus: ByStatus, reply: FastifyReply): void {
  const series = (byStatus[reply.statusCode] ??= new DurationSeries());
  series.observe(reply.elapsedTime / 1000);
}

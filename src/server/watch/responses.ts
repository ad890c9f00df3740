import { EventEmitter } from 'node:events';
import type { IncomingMessage } from 'node:http';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Caller, RequestWithCaller } from '../../plants/auth/caller';
import type { PlantStoreError, RequestOutcome } from '../../plants/errors/errors';
import { readsOwnBody } from '../../plants/host/fastify';
import type { HostRequest } from '../../plants/http/request';

/** A request that has its response. */
export interface CompletedRequest {
  readonly id: string;
  readonly raw: IncomingMessage;
  /** The pattern of its route; undefined if no route matched. */
  readonly route?: string | undefined;
  readonly status: number;
  /** Milliseconds from its headers to its response. */
  readonly ms: number;
  readonly caller?: Partial<Caller> | undefined;
  /** The id of the plant to create. */
  readonly plantId?: bigint | undefined;
  /** Undefined if the request succeeded. */
  readonly failure?: PlantStoreError | undefined;
  /** Undefined if the request was not one to create a plant. */
  readonly outcome?: RequestOutcome | undefined;
}

interface Events {
  /** A request has its response. */
  completed: [CompletedRequest];
  /** An error was sent, also to a client whose bytes are not a request. */
  failed: [PlantStoreError];
}

/** What guard, pipe, controller and filter have set on a request. */
type HandledRequest = FastifyRequest &
  Pick<HostRequest, 'failure' | 'plantId' | 'outcome'> &
  RequestWithCaller;

/**
 * Reports each response of one application to its metrics and its access log. What the listener
 * rejects reaches no hook of Fastify, so the listener emits these events itself.
 */
export class Responses extends EventEmitter<Events> {
  /** Reports the responses of all routes. */
  observe(instance: FastifyInstance): void {
    instance.addHook('onResponse', (request: HandledRequest, reply, done) => {
      const { id, raw, caller, plantId, failure, is404, routeOptions } = request;
      const { statusCode: status, elapsedTime: ms } = reply;
      const route = is404 ? undefined : routeOptions.url;
      const isCreate = readsOwnBody(routeOptions.config);
      const outcome = isCreate ? (failure?.outcome ?? request.outcome) : undefined;
      if (failure) this.emit('failed', failure);
      this.emit('completed', { id, raw, route, status, ms, caller, plantId, failure, outcome });
      done();
    });
  }
}

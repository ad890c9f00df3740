import { EventEmitter } from 'node:events';
import type { IncomingMessage } from 'node:http';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Caller } from '../../plants/auth/caller';
import type { PlantStoreError, RequestOutcome } from '../../plants/errors/errors';
import type { HostRequest } from '../../plants/http/request';

/** A request whose response was sent. */
export interface CompletedRequest {
  readonly id: string;
  readonly raw: IncomingMessage;
  /** The pattern of its route; undefined if no route matched. */
  readonly route?: string | undefined;
  readonly status: number;
  /** The time from the request headers to the response, in milliseconds. */
  readonly ms: number;
  readonly caller?: Caller | undefined;
  /** The id of the plant to create. */
  readonly plantId?: bigint | undefined;
  /** Undefined if the request succeeded. */
  readonly failure?: PlantStoreError | undefined;
  /** Undefined if the request is not a create request. */
  readonly outcome?: RequestOutcome | undefined;
}

interface Events {
  /** A response was sent. */
  completed: [CompletedRequest];
  /** An error response was sent, also to a client that sent bytes which are not a request. */
  failed: [PlantStoreError];
}

/**
 * Reports each response of one application to its metrics and logs. A request that the listener rejects
 * reaches no Fastify hook, so the listener emits these events itself.
 */
export class Responses extends EventEmitter<Events> {
  /** Reports the responses of all routes. */
  observe(instance: FastifyInstance): void {
    instance.addHook(
      'onResponse',
      (request: FastifyRequest & Pick<HostRequest, 'plantStore'>, reply, done) => {
        const { id, raw, is404, routeOptions } = request;
        const { caller, plantId, failure, outcome } = request.plantStore ?? {};
        const { statusCode: status, elapsedTime: ms } = reply;
        const route = is404 ? undefined : routeOptions.url;
        if (failure) this.emit('failed', failure);
        this.emit('completed', { id, raw, route, status, ms, caller, plantId, failure, outcome });
        done();
      },
    );
  }
}

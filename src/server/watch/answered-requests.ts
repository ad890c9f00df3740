import type { Channel } from 'node:diagnostics_channel';
import type { IncomingMessage } from 'node:http';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Caller, RequestWithCaller } from '../../plants/auth/caller';
import type { PlantStoreError } from '../../plants/errors/errors';
import type { HostRequest } from '../../plants/http/request';
import { IDEMPOTENT_REPLAYED } from '../../plants/idempotency-key';
import { type Refusal, refusalChannel } from '../edge/refusal';

export interface AnsweredRequest {
  readonly id: string;
  readonly raw: IncomingMessage;
  /** The pattern of its route; undefined if it reached none. */
  readonly route?: string | undefined;
  readonly status: number;
  /** Milliseconds from its head to its answer. */
  readonly ms: number;
  readonly caller?: Partial<Caller> | undefined;
  /** The id of the plant that it would create. */
  readonly plantId?: bigint | undefined;
  /** What became of a creation. */
  readonly outcome?: string | undefined;
}

/** What observes answers. */
export interface AnswerListeners {
  /** Gets each request once it is answered, also when it is refused before any router. */
  readonly answered: (request: AnsweredRequest) => void;
  /** Gets each error that is answered, also by the HTTP parser. */
  readonly failed?: (error: PlantStoreError) => void;
}

/** What guard, pipe and filter have found out about a request. */
type KnownRequest = FastifyRequest & Pick<HostRequest, 'failure' | 'plantId'> & RequestWithCaller;

/** The route of creations. */
const CREATIONS = '/plants';

/** Calls listeners for each answer. */
export function observeAnswers(
  instance: FastifyInstance,
  { answered, failed }: AnswerListeners,
): void {
  subscribe(instance, refusalChannel, (message) => {
    const { error, request } = message as Refusal;
    failed?.(error);
    const status = error.getStatus();
    if (request) answered({ ...request, status, ms: 0, outcome: error.outcome });
  });
  instance.addHook('onResponse', (request: KnownRequest, reply, done) => {
    const { id, raw, caller, plantId, failure, is404, routeOptions } = request;
    const { statusCode: status, elapsedTime: ms } = reply;
    const route = is404 ? undefined : routeOptions.url;
    const success = reply.hasHeader(IDEMPOTENT_REPLAYED) ? 'replayed' : 'created';
    const outcome = route === CREATIONS ? (failure ? failure.outcome : success) : undefined;
    if (failure) failed?.(failure);
    answered({ id, raw, route, status, ms, caller, plantId, outcome });
    done();
  });
}

/** Subscribes to a channel until the server closes. */
export function subscribe(
  instance: FastifyInstance,
  channel: Channel,
  listener: (message: unknown) => void,
): void {
  channel.subscribe(listener);
  instance.addHook('onClose', (_instance, done) => {
    channel.unsubscribe(listener);
    done();
  });
}

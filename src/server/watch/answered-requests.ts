import type { Channel } from 'node:diagnostics_channel';
import type { IncomingMessage } from 'node:http';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Caller } from '../../plants';
import { errorChannel, type ErrorEvent, IDEMPOTENT_REPLAYED } from '../../plants/program';
import { isCreation } from '../edge/request-rules';
import { type Refusal, refusalChannel } from '../edge/refusal';
import type { LoggedRequest } from './request-context';

export interface AnsweredRequest extends LoggedRequest {
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

/** What guard and pipe have found out about a request. */
type KnownRequest = FastifyRequest & Pick<AnsweredRequest, 'caller' | 'plantId'>;

/** Calls a listener for each request once it is answered, also when it is refused before any router. */
export function observeAnswers(
  instance: FastifyInstance,
  listener: (request: AnsweredRequest) => void,
): void {
  const failures = new WeakMap<IncomingMessage, string>();
  subscribe(instance, errorChannel, (message) => {
    const { error, request } = message as ErrorEvent;
    if (error.outcome && request && isCreation(request)) failures.set(request, error.outcome);
  });
  subscribe(instance, refusalChannel, (message) => {
    const refusal = message as Refusal;
    listener({ ...refusal, ms: 0, outcome: failures.get(refusal.raw) });
  });
  instance.addHook('onResponse', (request: KnownRequest, reply, done) => {
    const { id, raw, caller, plantId, is404, routeOptions } = request;
    const { statusCode: status, elapsedTime: ms } = reply;
    const success = reply.hasHeader(IDEMPOTENT_REPLAYED) ? 'replayed' : 'created';
    const outcome = status === 200 && isCreation(raw) ? success : failures.get(raw);
    const route = is404 ? undefined : routeOptions.url;
    listener({ id, raw, route, status, ms, caller, plantId, outcome });
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

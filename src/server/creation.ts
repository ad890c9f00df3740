import type { IncomingMessage } from 'node:http';
import type { FastifyReply } from 'fastify';
import { IDEMPOTENT_REPLAYED } from '../plants/program';

const PATH = '/plants';

/** Whether a request, with a target in origin form, is a creation: the contract's operation. */
export function isCreation({ method, url = '' }: Pick<IncomingMessage, 'method' | 'url'>): boolean {
  return method === 'POST' && (url === PATH || url.startsWith(`${PATH}?`));
}

/** The outcome of a creation that is answered with 200. */
export function successOf(reply: FastifyReply): 'created' | 'replayed' {
  return reply.hasHeader(IDEMPOTENT_REPLAYED) ? 'replayed' : 'created';
}

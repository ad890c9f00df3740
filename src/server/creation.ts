import type { IncomingMessage } from 'node:http';

const PATH = '/plants';

/** Whether a request, with a target in origin form, is a creation: the contract's operation. */
export function isCreation({ method, url = '' }: Pick<IncomingMessage, 'method' | 'url'>): boolean {
  return method === 'POST' && (url === PATH || url.startsWith(`${PATH}?`));
}

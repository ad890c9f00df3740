import type { IncomingMessage } from 'node:http';

/** Where a module is mounted unless its host says otherwise: specification, "Create plant". */
export const PLANTS_PATH = 'plants';

/** Whether a request to the service, with a target in origin form, is a creation: the contract's operation. */
export function isCreation({ method, url }: Pick<IncomingMessage, 'method' | 'url'>): boolean {
  return method === 'POST' && url?.split('?', 1)[0] === `/${PLANTS_PATH}`;
}

/** The injection token of the largest body that the module reads, in bytes. */
export const BODY_LIMIT = Symbol('PlantsModule.bodyLimit');

/** What {@link BODY_LIMIT} is unless the host says otherwise. */
export const DEFAULT_BODY_LIMIT = 2 ** 20;

/** The injection token of the path at which the host has mounted the module. */
export const MOUNTING_PATH = Symbol('PlantsModule.path');

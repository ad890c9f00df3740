/** Where a module is mounted unless its host says otherwise: specification, "Create plant". */
export const PLANTS_PATH = 'plants';

/** The contract's one operation, as routers have it. */
export const createPlantRoute = { method: 'POST', url: `/${PLANTS_PATH}` } as const;

/** The injection token of the largest body that the module reads, in bytes. */
export const BODY_LIMIT = Symbol('PlantsModule.bodyLimit');

/** What {@link BODY_LIMIT} is unless the host says otherwise. */
export const DEFAULT_BODY_LIMIT = 2 ** 20;

/** The injection token of the path at which the host has mounted the module. */
export const MOUNTING_PATH = Symbol('PlantsModule.path');

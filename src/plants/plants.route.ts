/** Where a module is mounted unless its host says otherwise: specification, "Create plant". */
export const PLANTS_PATH = 'plants';

/** The contract's one operation, as routers have it. */
export const createPlantRoute = { method: 'POST', url: `/${PLANTS_PATH}` } as const;

/** The injection token of the path at which the host has mounted the module. */
export const MOUNTING_PATH = Symbol('PlantsModule.path');

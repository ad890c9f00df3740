import { channel } from 'node:diagnostics_channel';

/** Node's diagnostics channel of the errors answered; its messages are `PlantStoreError`s. */
export const errorChannel = channel('plant-store:error');

/**
 * Node's diagnostics channel of the requests answered with 5xx, while their line is logged; its
 * messages are the requests. Bind a store to it to know the request of the line.
 */
export const failureChannel = channel('plant-store:failure');

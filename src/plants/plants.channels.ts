import { channel, tracingChannel } from 'node:diagnostics_channel';
import type { IncomingMessage } from 'node:http';
import type { PlantStoreError } from './errors/errors';

/** A batch has ended, whether it was committed or not. */
export interface BatchEvent {
  readonly items: number;
  /** How long its commit took, in milliseconds. */
  readonly duration: number;
}

/** Its messages are {@link BatchEvent}s. */
export const batchChannel = channel('plant-store:batch');

export interface CommitEvent {
  /** How many items are in its batch, once that has begun. */
  batchSize?: number;
}

/** Traces an item from being submitted to its outcome. */
export const commitChannel = tracingChannel<CommitEvent>('plant-store:commit');

/** Traces the reading and validation of a request's content. */
export const validationChannel = tracingChannel('plant-store:validation');

/** An error has been answered. */
export interface ErrorEvent {
  readonly error: PlantStoreError;
  /** The request that it answers; undefined for one that Node's HTTP parser refused. */
  readonly request: IncomingMessage | undefined;
}

/** Node's diagnostics channel of the errors answered; its messages are {@link ErrorEvent}s. */
export const errorChannel = channel('plant-store:error');

/**
 * Node's diagnostics channel of the requests answered with 5xx, while their line is logged; its
 * messages are the requests. Bind a store to it to know the request of the line.
 */
export const failureChannel = channel('plant-store:failure');

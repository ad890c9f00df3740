import { channel, tracingChannel } from 'node:diagnostics_channel';

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

import type { ServerResponse } from 'node:http';
import { totalmem } from 'node:os';
import { Injectable } from '@nestjs/common';
import { UnavailableError } from '../errors/errors';

const MIB = 2 ** 20;

/** Bytes from which a body counts. Most are smaller. */
const SMALLEST = 4096;

/** Bytes of memory that the process uses without bodies. */
const BASE = 150 * MIB;

/**
 * How many bytes of memory each byte of a body takes at worst. The body is received, decoded, copied for
 * the store and written into the answer, and the garbage collector may not have freed any of these.
 * `small-memory` in `test/faults` measures it.
 */
const FACTOR = 48;

/**
 * Bounds the memory that the bodies of all creations in progress take together. It counts the bytes that
 * have arrived, never those that a head announces.
 */
@Injectable()
export class BodyMemory {
  /** Bytes, by the answer until which they take memory. */
  private readonly sizes = new Map<ServerResponse, number>();
  private total = 0;
  private readonly limit: number;
  // Created once, so that refusals do not each capture a stack trace.
  private readonly full = new UnavailableError({
    cause: new Error('overloaded: request bodies use too much memory'),
  });

  constructor() {
    // Of the control group (container), which reports 0 or more than the machine has without a limit.
    const memory = Math.min(process.constrainedMemory() || Infinity, totalmem());
    // However small the memory is, bodies may have 2 MiB.
    this.limit = Math.max(2 * MIB, Math.floor((memory - BASE) / FACTOR));
  }

  /**
   * Notes how much of a body has arrived, until its answer is closed. A single body may exceed the bound.
   *
   * @param size bytes of the body so far
   * @returns the error to refuse it with when there is no room
   */
  note(size: number, response: ServerResponse): UnavailableError | undefined {
    // The host may have answered before the body has arrived.
    if (size < SMALLEST || response.closed) return undefined;
    const before = this.sizes.get(response);
    const total = this.total - (before ?? 0) + size;
    const others = this.sizes.size - (before === undefined ? 0 : 1);
    if (total > this.limit && others > 0) return this.full;
    if (before === undefined) {
      response.once('close', () => {
        this.total -= this.sizes.get(response) ?? 0;
        this.sizes.delete(response);
      });
    }
    this.sizes.set(response, size);
    this.total = total;
    return undefined;
  }
}

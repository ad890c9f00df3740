import type { ServerResponse } from 'node:http';
import { totalmem } from 'node:os';
import { Injectable } from '@nestjs/common';
import { UnavailableError } from '../errors/errors';

const MIB = 2 ** 20;

/** The size from which a body counts. Most bodies are smaller. */
const MIN_COUNTED_BODY_BYTES = 4096;

/** The memory that the process uses without bodies. */
const BASELINE_BYTES = 150 * MIB;

/**
 * The memory that each byte of a body takes at worst. The body is received, decoded, copied for the store and
 * written into the response, and the garbage collector may not have freed any of these copies yet.
 * `small-memory` in `test/faults` measures it.
 */
const MEMORY_BYTES_PER_BODY_BYTE = 48;

/**
 * Limits the memory that the bodies of all create requests in progress take together. It counts the bytes that
 * have arrived, not what `Content-Length` announces.
 */
@Injectable()
export class BodyMemory {
  /** Received bytes of each body, keyed by the response until which they stay in memory. */
  private readonly sizes = new Map<ServerResponse, number>();
  private total = 0;
  private readonly limit: number;
  // Created once, so that not every rejection captures a stack trace.
  private readonly full = new UnavailableError({
    cause: new Error('overloaded: request bodies use too much memory'),
  });

  constructor() {
    // The limit of the container (cgroup). Without a limit it is 0, or more than the machine has.
    const memory = Math.min(process.constrainedMemory() || Infinity, totalmem());
    // Bodies may always take 2 MiB, however small the memory is.
    this.limit = Math.max(
      2 * MIB,
      Math.floor((memory - BASELINE_BYTES) / MEMORY_BYTES_PER_BODY_BYTE),
    );
  }

  /**
   * Reserves memory for the part of a body that has arrived, until its response is closed. A single body may
   * exceed the limit.
   *
   * @param size bytes of the body so far
   * @returns the error to respond with if the limit is exceeded; otherwise undefined
   */
  reserve(size: number, response: ServerResponse): UnavailableError | undefined {
    // The host may have responded before the body arrived.
    if (size < MIN_COUNTED_BODY_BYTES || response.closed) return undefined;
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

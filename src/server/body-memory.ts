import type { IncomingMessage, ServerResponse } from 'node:http';
import { totalmem } from 'node:os';
import { UnavailableError } from '../plants';

const MIB = 2 ** 20;

/** Bytes from which a body counts. Most are smaller, and cost no bookkeeping. */
const SMALLEST = 4096;

/** Bytes of memory that the process uses without bodies. */
const BASE = 150 * MIB;

/**
 * How much memory a byte of an admitted body takes at worst: received, decoded, copied for the store,
 * written into the answer, and all of these not collected yet. `small-memory` in `test/faults` measures it.
 */
const FACTOR = 16;

/**
 * Bounds the memory of the bodies that are received or worked on at the same time, by the memory that
 * the process may use: that of its control group (container), or else of the machine.
 */
export class BodyMemory {
  private reserved = 0;
  private readonly limit: number;
  // Created once, so that refusals do not each capture a stack trace.
  private readonly full = new UnavailableError({
    cause: new Error('overloaded: request bodies use too much memory'),
  });

  /**
   * @param bodyLimit bytes of the largest body that is accepted
   * @param memory bytes that the process may use
   */
  constructor(
    private readonly bodyLimit: number,
    // Of a group without a limit it is 0, or more than there is.
    memory = Math.min(process.constrainedMemory() || Infinity, totalmem()),
  ) {
    // Bodies may have 2 MiB in any memory.
    this.limit = Math.max(2 * MIB, Math.floor((memory - BASE) / FACTOR));
  }

  /**
   * Reserves memory for a body until its answer is closed. A single body may exceed the bound.
   *
   * @throws UnavailableError when there is no room for it
   */
  reserve(request: IncomingMessage, response: ServerResponse): void {
    const size = this.sizeOf(request);
    if (size < SMALLEST) return;
    if (this.reserved > 0 && this.reserved + size > this.limit) throw this.full;
    this.reserved += size;
    response.once('close', () => (this.reserved -= size));
  }

  /** The bytes that a body may have: the limit of all if its length is not declared. */
  private sizeOf({ headers }: IncomingMessage): number {
    if (headers['transfer-encoding'] !== undefined) return this.bodyLimit;
    const length = Number(headers['content-length'] ?? 0);
    // Refused for its length, unread.
    return length <= this.bodyLimit ? length : 0;
  }
}

import type { IncomingMessage, ServerResponse } from 'node:http';
import { totalmem } from 'node:os';
import { UnavailableError } from '../errors';
import { delayBody } from './refused-bodies';

const KIB = 1024;
const MIB = 1024 * KIB;

/** Bytes from which a body counts. Most are smaller, and cost no bookkeeping. */
const SMALLEST = 4 * KIB;

/** Bytes of memory that the process uses without bodies. */
const BASE = 128 * MIB;

/**
 * How much memory a byte of an admitted body takes at worst: received, decoded, copied for the store,
 * written into the answer, and all of these not collected yet. Measured by small-memory.faults.ts.
 */
const FACTOR = 16;

/** Milliseconds for which a body counts after it was answered: it is not collected at once. */
const COLLECTION_TIME = 250;

/** Bytes that bodies may have in any memory. */
const LEAST = 2 * MIB;

/**
 * Bounds the memory of the bodies that are received or worked on at the same time, by the memory that
 * the process may use: that of its control group (container), or else of the machine.
 */
export class BodyMemory {
  private held = 0;
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
    memory = availableMemory(),
  ) {
    this.limit = Math.max(LEAST, Math.floor((memory - BASE) / FACTOR));
  }

  /**
   * Reserves memory for the body of a request until it is answered, and a moment longer. A single body
   * may exceed the bound.
   *
   * @returns why the request must be refused; undefined if it may be read
   */
  hold(request: IncomingMessage, response: ServerResponse): UnavailableError | undefined {
    const size = this.sizeOf(request);
    if (size < SMALLEST) return undefined;
    if (this.held > 0 && this.held + size > this.limit) return this.full;
    this.held += size;
    response.once('close', () => {
      setTimeout(() => {
        this.held -= size;
      }, COLLECTION_TIME);
    });
    return undefined;
  }

  /** Reads the body of a refused request, if that counts, at a pace that bounds its memory too. */
  refuse(request: IncomingMessage): void {
    const { headers, complete, socket } = request;
    if (complete) return;
    const length = Number(headers['content-length'] ?? 0);
    const size = length > this.bodyLimit ? this.bodyLimit : this.sizeOf(request);
    if (size >= SMALLEST) delayBody(socket, size);
  }

  /** The bytes that a body may have: the limit of all if its length is not declared. */
  private sizeOf({ headers }: IncomingMessage): number {
    if (headers['transfer-encoding'] !== undefined) return this.bodyLimit;
    const length = Number(headers['content-length'] ?? 0);
    // Refused for its length, unread.
    return length <= this.bodyLimit ? length : 0;
  }
}

function availableMemory(): number {
  // Of a group without a limit it is 0, or more than there is.
  return Math.min(process.constrainedMemory() || Infinity, totalmem());
}

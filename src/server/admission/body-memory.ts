import type { IncomingMessage } from 'node:http';
import { totalmem } from 'node:os';
import type { Writable } from 'node:stream';
import { UnavailableError } from '../../plants';

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

/** Bounds the memory that the bodies of all creations in progress take together. */
export class BodyMemory {
  private reserved = 0;
  private readonly limit: number;
  // Created once, so that refusals do not each capture a stack trace.
  private readonly full = new UnavailableError({
    cause: new Error('overloaded: request bodies use too much memory'),
  });

  /**
   * @param bodyLimit bytes of the largest body that is accepted
   * @param memory bytes that the process may use: by default those of its control group (container), or
   * else of the machine
   */
  constructor(
    private readonly bodyLimit: number,
    // A control group without a limit reports 0, or more than the machine has.
    memory = Math.min(process.constrainedMemory() || Infinity, totalmem()),
  ) {
    // However small the memory is, bodies may have 2 MiB.
    this.limit = Math.max(2 * MIB, Math.floor((memory - BASE) / FACTOR));
  }

  /**
   * Reserves memory for a body until its answer is closed. A single body may exceed the bound.
   *
   * @throws UnavailableError when there is no room for it
   */
  reserve({ headers }: Pick<IncomingMessage, 'headers'>, response: Writable): void {
    // In chunks, a body may have any length up to the limit.
    const isChunked = headers['transfer-encoding'] !== undefined;
    const size = isChunked ? this.bodyLimit : Number(headers['content-length'] ?? 0);
    if (size < SMALLEST) return;
    if (this.reserved > 0 && this.reserved + size > this.limit) throw this.full;
    this.reserved += size;
    response.once('close', () => (this.reserved -= size));
  }
}

import { hasSameContent, type Plant } from '../plant';
import type { Insertion } from '../plants.repository';
import type { GroupCommitOptions } from './group-commit';

export interface KeyedPlant extends Plant {
  /** The SHA-256 of its idempotency key and caller, in hexadecimal digits; absent when it has no key. */
  readonly keyDigest?: string | undefined;
}

/**
 * The outcome for a plant whose id is taken.
 *
 * @param stored the plant that has the id; undefined when that one has another key or none
 */
export function repetitionOutcome(stored: KeyedPlant | undefined, plant: KeyedPlant): Insertion {
  if (plant.keyDigest === undefined || plant.keyDigest !== stored?.keyDigest) return 'taken';
  return hasSameContent(stored, plant) ? 'replayed' : 'keyReused';
}

/** Characters or bytes of text after which a page ends early, to bound its memory. */
export const PAGE_TEXT_LIMIT = 2 ** 20;

/** How plants share commits, in every store. */
export const plantBatches = {
  /** 1, and 1 more for each full 4096 characters of text. */
  weigh: ({ name, tag = '' }) => 1 + Math.floor((name.length + tag.length) / 4096),
  batchWeight: 1024,
  queueWeight: 16_384,
  queueTime: 1000,
  deadline: 10_000,
} as const satisfies Partial<GroupCommitOptions<KeyedPlant, unknown>>;

import type { Plant } from '../plant';
import type { GroupCommitOptions } from './group-commit';

/** A plant weighs 1, and 1 more for each full 4096 characters of its text. */
const WEIGHT_UNIT = 4096;

/** How plants share commits, in every store. docs/operating.md names these limits. */
export const plantBatches = {
  weigh: ({ name, tag = '' }) => 1 + Math.floor((name.length + tag.length) / WEIGHT_UNIT),
  batchWeight: 1024,
  queueWeight: 16_384,
  queueTime: 1000,
  deadline: 10_000,
} as const satisfies Partial<GroupCommitOptions<Plant, unknown>>;

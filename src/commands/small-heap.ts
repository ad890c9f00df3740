import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Bytes of V8's young generation that are enough for the plants in work. */
const YOUNG_SIZE = 16 * 2 ** 20;

let isOldLimited = false;
let isYoungLimited = false;

/**
 * Keeps the heap of a long command small. V8 lets the old generation grow to several times what is alive
 * in it, and doubles the young one, up to 64 MiB, each time that enough objects have survived there: the
 * heap grows with the time that a command runs. Call it now and then. The young generation begins too
 * small for work in batches, and while the program runs no option sets its size.
 */
export function keepHeapSmall(): void {
  if (!isOldLimited) {
    isOldLimited = true;
    setFlagsFromString('--heap-growing-percent=50');
    // The option counts from the first collection on, for which V8 waits too long.
    setFlagsFromString('--expose-gc');
    (runInNewContext('gc') as () => void)();
  }
  if (!isYoungLimited) {
    const young = getHeapSpaceStatistics().find(({ space_name: name }) => name === 'new_space');
    isYoungLimited = young === undefined || young.space_size >= YOUNG_SIZE;
    if (isYoungLimited) setFlagsFromString('--semi-space-growth-factor=1');
  }
}

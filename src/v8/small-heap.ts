import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { isYoungGenerationLarge, setYoungGrowth } from './young-generation';

let isOldLimited = false;
let isYoungLimited = false;

/**
 * Keeps the heap of a long command small. V8 lets the old generation grow to several times what is alive
 * in it, and doubles the young one, up to 64 MiB, each time that enough objects have survived there: the
 * heap grows with the time that a command runs. Call it now and then. The young generation begins too
 * small for work in batches.
 */
export function keepHeapSmall(): void {
  if (!isOldLimited) {
    isOldLimited = true;
    setFlagsFromString('--heap-growing-percent=50');
    // The option counts from the first collection on, for which V8 waits too long.
    setFlagsFromString('--expose-gc');
    (runInNewContext('gc') as () => void)();
  }
  if (!isYoungLimited && isYoungGenerationLarge()) {
    isYoungLimited = true;
    setYoungGrowth(false);
  }
}

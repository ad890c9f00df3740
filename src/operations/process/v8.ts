import { executionAsyncResource } from 'node:async_hooks';
import { setFlagsFromString } from 'node:v8';

/** What is kept only so that V8 does not forget its shape. */
const kept: object[] = [];

/**
 * Settles two guesses of V8 that turn out wrong for a service that starts, waits and then serves, and
 * that cost it some 10 µs of CPU a request (docs/performance.md). To be called once, at the start.
 */
export function tuneV8(): void {
  keepRequestsYoung();
  keepTicksFast();
}

/**
 * Has V8 allocate whatever a request needs in the young generation of the heap.
 *
 * V8 notes where in the code long-lived arrays were made and has such code allocate in the old
 * generation from then on. Node's event emitter is such a place: the arrays of listeners made while
 * the service starts stay, while those of a response live as long as the response. In about a third
 * of all starts V8 took the latter for the former, and every array in the old generation, dead or
 * not, kept its request and response from being collected cheaply: 8 µs more a request, and 110 MiB
 * more memory.
 */
function keepRequestsYoung(): void {
  setFlagsFromString('--no-allocation-site-pretenuring');
}

/**
 * Keeps `process.nextTick` fast, which each request calls some nine times.
 *
 * The object that Node makes of a call has members whose names are computed, and V8 makes it fast for
 * as long as it knows the shape of such objects. It forgets a shape that no object has, and so it does
 * whenever it collects the garbage of a service that waits; from then on each object is made step by
 * step by V8's runtime: 2 µs more a request, for as long as the process lives.
 */
function keepTicksFast(): void {
  process.nextTick(() => {
    kept.push(executionAsyncResource());
  });
}

import { executionAsyncResource } from 'node:async_hooks';
import { setFlagsFromString } from 'node:v8';

/** Objects kept only so that V8 does not discard their shapes. */
const kept: object[] = [];

/**
 * Overrides two optimizations of V8 that go wrong in a service that starts, waits and then serves.
 * They cost some 10 µs of CPU a request (docs/performance.md). Call it once, at the start.
 */
export function tuneV8(): void {
  disablePretenuring();
  keepNextTickFast();
}

/**
 * Makes V8 allocate the objects of a request in the young generation of the heap.
 *
 * V8 observes which code creates long-lived arrays, and then lets that code allocate in the old
 * generation (pretenuring). Node's event emitter misleads it: the listener arrays of the server live
 * as long as the service, those of a response only as long as the response. In about a third of all
 * starts V8 pretenured both. Each array in the old generation, dead or alive, then kept its request
 * and response from being collected cheaply: 8 µs more a request, and 110 MiB more memory.
 */
function disablePretenuring(): void {
  setFlagsFromString('--no-allocation-site-pretenuring');
}

/**
 * Keeps `process.nextTick` fast, which each request calls some nine times.
 *
 * Node creates an object for each call, with computed member names. V8 creates it fast as long as it
 * knows the shape of such objects. A garbage collection discards a shape that no object has, which
 * happens while the service waits. From then on V8's slow runtime creates each object: 2 µs more a
 * request, until the process ends.
 */
function keepNextTickFast(): void {
  process.nextTick(() => {
    kept.push(executionAsyncResource());
  });
}

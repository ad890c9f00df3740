import type { DestinationStream } from 'pino';
import { SonicBoom } from 'sonic-boom';

/** Milliseconds without progress after which the reader is taken to have stalled. */
const STALL = 1000;

let shared: DestinationStream | undefined;

/**
 * The standard output of the process, written asynchronously. The service goes on when it cannot be
 * written, because the disk is full or its reader does not read. Up to 16 MiB of lines wait, and later
 * ones are dropped. `pino.destination` would write what waits at the exit of the process, which then
 * never ends if the reader has stalled.
 */
export function standardOutput(): DestinationStream {
  if (shared !== undefined) return shared;
  const output = new SonicBoom({ fd: 1, maxLength: 2 ** 24 });
  /** When the latest progress was, while lines wait. */
  let waitingSince = Infinity;
  output.on('error', () => (waitingSince = -Infinity));
  output.on('write', () => (waitingSince = performance.now()));
  output.on('drain', () => (waitingSince = Infinity));
  const write = (line: string): void => {
    if (waitingSince === Infinity) waitingSince = performance.now();
    output.write(line);
  };
  // pino calls it after a line of level `fatal`, too.
  const flushSync = (): void => {
    if (performance.now() - waitingSince < STALL) output.flushSync();
  };
  process.once('exit', flushSync);
  return (shared = Object.assign({ write }, { flushSync }));
}

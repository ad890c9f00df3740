import { type DestinationStream, type Logger, pino } from 'pino';
import { prettyFactory } from 'pino-pretty';
import { SonicBoom } from 'sonic-boom';

const formatForTerminal = prettyFactory({
  translateTime: 'HH:MM:ss',
  ignore: 'pid,hostname,context',
  messageFormat: '{if context}{context}: {end}{msg}',
  singleLine: true,
});

/** The time without progress after which the reader of the standard output counts as stalled. */
const STALL_MS = 1000;

/** Writes readable lines to a terminal, and one JSON object per line otherwise. */
const output = process.stdout.isTTY
  ? { write: (line: string) => process.stdout.write(formatForTerminal(line)) }
  : openStandardOutput();

export function createLogger(level: string): Logger {
  return pino({ level }, output);
}

/**
 * Opens the standard output for asynchronous writing. If it cannot be written, because the disk is full or its reader
 * has stalled, up to 16 MiB are buffered, and further lines are dropped. `pino.destination` is not used, even with
 * `retryEAGAIN`: at exit it retries until everything is written.
 */
function openStandardOutput(): DestinationStream {
  const stream = new SonicBoom({ fd: 1, maxLength: 2 ** 24 });
  /** While lines are buffered: the time of the last successful write. Otherwise Infinity, and -Infinity after an error. */
  let lastProgressAt = Infinity;
  stream.on('error', () => (lastProgressAt = -Infinity));
  stream.on('write', () => (lastProgressAt = performance.now()));
  stream.on('drain', () => (lastProgressAt = Infinity));
  const write = (line: string): void => {
    if (lastProgressAt === Infinity) lastProgressAt = performance.now();
    stream.write(line);
  };
  // pino also calls this after a line of level `fatal`.
  const flushSync = (): void => {
    if (performance.now() - lastProgressAt < STALL_MS) stream.flushSync();
  };
  process.once('exit', flushSync);
  return Object.assign({ write }, { flushSync });
}

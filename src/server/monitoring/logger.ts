import { type DestinationStream, type Logger, pino } from 'pino';
import { prettyFactory } from 'pino-pretty';
import { SonicBoom } from 'sonic-boom';

/**
 * Creates the logger of the service. It writes readable lines to a terminal, and one JSON object per line
 * otherwise.
 *
 * @param level a log level of pino
 */
export function createLogger(level: string): Logger {
  if (!process.stdout.isTTY) return pino({ level }, (standardOutput ??= openStandardOutput()));
  return pino({ level }, { write: (line) => process.stdout.write(formatForTerminal(line)) });
}

const formatForTerminal = prettyFactory({
  translateTime: 'HH:MM:ss',
  ignore: 'pid,hostname,context',
  messageFormat: '{if context}{context}: {end}{msg}',
  singleLine: true,
});

/** The time without progress after which the reader of the standard output counts as stalled. */
const STALL_MS = 1000;

let standardOutput: DestinationStream | undefined;

/**
 * Opens the standard output for asynchronous writing. The service keeps running if the output cannot be
 * written because the disk is full or its reader has stalled: up to 16 MiB are buffered, and further lines
 * are dropped. `pino.destination` is not used, even with `retryEAGAIN`: at exit it retries until everything
 * is written, so the process would not end if the disk is full or the reader has stalled.
 */
function openStandardOutput(): DestinationStream {
  const output = new SonicBoom({ fd: 1, maxLength: 2 ** 24 });
  /** While lines are buffered: the time of the last successful write. Otherwise Infinity, and -Infinity after an error. */
  let lastProgressAt = Infinity;
  output.on('error', () => (lastProgressAt = -Infinity));
  output.on('write', () => (lastProgressAt = performance.now()));
  output.on('drain', () => (lastProgressAt = Infinity));
  const write = (line: string): void => {
    if (lastProgressAt === Infinity) lastProgressAt = performance.now();
    output.write(line);
  };
  // pino also calls this after a line of level `fatal`.
  const flushSync = (): void => {
    if (performance.now() - lastProgressAt < STALL_MS) output.flushSync();
  };
  process.once('exit', flushSync);
  return Object.assign({ write }, { flushSync });
}

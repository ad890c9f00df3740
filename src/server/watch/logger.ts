import { type DestinationStream, type Logger, pino } from 'pino';
import { prettyFactory } from 'pino-pretty';
import { SonicBoom } from 'sonic-boom';

/**
 * The logger of the service. It writes readable lines to a terminal, and one JSON object a line to
 * anything else.
 *
 * @param level a level of pino
 */
export function createLogger(level: string): Logger {
  if (!process.stdout.isTTY) return pino({ level }, standardOutput());
  const write = (line: string): void => {
    process.stdout.write(formatForTerminal(line));
  };
  return pino({ level }, { write });
}

/**
 * Escapes the control characters that JSON allows in a text, U+007F to U+009F: U+009B begins a command
 * of a terminal that shows the log.
 */
function escapeControls(json: string): string {
  return json.replace(
    /[\x7f-\x9f]/g,
    (character) => `\\u00${character.charCodeAt(0).toString(16)}`,
  );
}

const format = prettyFactory({
  translateTime: 'HH:MM:ss',
  ignore: 'pid,hostname,context',
  messageFormat: '{if context}{context}: {end}{msg}',
  singleLine: true,
});

/** Characters that control or confuse a terminal: control and format characters, line separators. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/**
 * Formats a JSON line of pino's for people; an error follows, indented. Logged text can neither begin a
 * line of its own nor move the cursor: pino-pretty 13 writes it as it is, so it is escaped before.
 */
export function formatForTerminal(json: string): string {
  const fields: unknown = JSON.parse(json, (name, value: unknown) => {
    if (typeof value !== 'string') return value;
    return value.replace(UNPRINTABLE, (character) =>
      // pino-pretty indents the lines of a stack.
      name === 'stack' && character === '\n'
        ? character
        : `\\u{${character.codePointAt(0)?.toString(16)}}`,
    );
  });
  return format(fields);
}

/** Milliseconds without progress after which the reader of the standard output counts as stalled. */
const STALL = 1000;

let shared: DestinationStream | undefined;

/**
 * The standard output of the process, written asynchronously. The service goes on when it cannot be
 * written, because the disk is full or its reader does not read. Up to 16 MiB of lines wait, and later
 * ones are dropped. With `pino.destination` the process would never end: what waits is written at the
 * exit, and tried again after each error. Its option `retryEAGAIN` decides about neither a full disk nor
 * a pipe whose reader has stalled.
 */
function standardOutput(): DestinationStream {
  if (shared !== undefined) return shared;
  const output = new SonicBoom({ fd: 1, maxLength: 2 ** 24 });
  /** When the latest progress was, while lines wait. */
  let waitingSince = Infinity;
  output.on('error', () => (waitingSince = -Infinity));
  output.on('write', () => (waitingSince = performance.now()));
  output.on('drain', () => (waitingSince = Infinity));
  const write = (line: string): void => {
    if (waitingSince === Infinity) waitingSince = performance.now();
    output.write(escapeControls(line));
  };
  // pino calls it after a line of level `fatal`, too.
  const flushSync = (): void => {
    if (performance.now() - waitingSince < STALL) output.flushSync();
  };
  process.once('exit', flushSync);
  return (shared = Object.assign({ write }, { flushSync }));
}

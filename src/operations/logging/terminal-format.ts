import { pino } from 'pino';

/** A line of pino's, parsed. */
interface Line extends Record<string, unknown> {
  readonly level: number;
  /** Milliseconds since the epoch. */
  readonly time: number;
  readonly msg?: string;
  /** The name of the logger. */
  readonly context?: string;
  readonly err?: { readonly stack?: string };
}

/** Characters that control or confuse a terminal: control and format characters, line separators. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/**
 * Formats a JSON line of pino's for people; the stack of an error follows, indented. Logged text can
 * neither begin a line of its own nor move the cursor.
 *
 * Tried instead: `pino-pretty` 13 lets a line feed in a message begin a line of its own, and writes C1
 * controls, bidirectional overrides and line separators as they are.
 */
export function formatForTerminal(json: string): string {
  const { level, time, msg = '', context, err, ...fields } = JSON.parse(json) as Line;
  const clock = new Date(time).toTimeString().slice(0, 8);
  const label = (pino.levels.labels[level] ?? String(level)).toUpperCase().padEnd(5);
  const details = Object.entries(fields)
    .filter(([name]) => name !== 'pid' && name !== 'hostname')
    .map(([name, value]) => ` ${name}=${JSON.stringify(value)}`);
  const line = printable(
    `${clock} ${label} ${context ? `${context}: ` : ''}${msg}${details.join('')}`,
  );
  const stack = (err?.stack ?? '').split('\n').filter((each) => each !== '');
  return [line, ...stack.map((each) => `    ${printable(each)}`), ''].join('\n');
}

function printable(text: string): string {
  return text.replace(UNPRINTABLE, (character) => {
    const code = character.codePointAt(0) ?? 0;
    return `\\u{${code.toString(16)}}`;
  });
}

import { pino } from 'pino';

/** A line of pino's, parsed. */
interface Line extends Record<string, unknown> {
  readonly level: number;
  /** Milliseconds since the epoch. */
  readonly time: number;
  readonly msg?: string;
  /** Who logs. */
  readonly context?: string;
  readonly err?: { readonly stack?: string };
}

/** What a terminal may obey or be misled by: control and format characters, line separators. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/**
 * Turns one JSON line of pino's into one for people; the stack of an error follows, indented.
 * Nothing that is logged can begin a line of its own or move the cursor.
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

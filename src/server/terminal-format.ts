import { prettyFactory } from 'pino-pretty';

/** Characters that control or confuse a terminal: control and format characters, line separators. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

const format = prettyFactory({
  translateTime: 'HH:MM:ss',
  ignore: 'pid,hostname,context',
  messageFormat: '{if context}{context}: {end}{msg}',
  singleLine: true,
});

/**
 * Formats a JSON line of pino's for people; an error follows, indented. Logged text can neither begin a
 * line of its own nor move the cursor: pino-pretty 13 writes it as it is, so it is escaped before.
 */
export function formatForTerminal(json: string): string {
  return format(
    JSON.parse(json, (name, value: unknown) =>
      typeof value === 'string' ? printable(value, name === 'stack') : value,
    ),
  );
}

/** @param isStack whether line feeds stay, which pino-pretty indents */
function printable(text: string, isStack: boolean): string {
  return text.replace(UNPRINTABLE, (character) =>
    isStack && character === '\n' ? character : `\\u{${character.codePointAt(0)?.toString(16)}}`,
  );
}

import { stripVTControlCharacters } from 'node:util';
import { formatForTerminal } from './logger';

describe('formatForTerminal', () => {
  const time = new Date(2026, 0, 2, 3, 4, 5).getTime();
  /** Formats a log line, and removes the colours that pino-pretty may add. */
  const format = (fields: object) =>
    stripVTControlCharacters(formatForTerminal(JSON.stringify({ level: 30, time, ...fields })));

  it('formats time, level, logger, message and fields', () => {
    expect(format({ pid: 1, hostname: 'h', context: 'Store', msg: 'open', path: 'a b' })).toBe(
      '[03:04:05] INFO: Store: open {"path":"a b"}\n',
    );
  });

  it('formats the stack of an error below the line, indented', () => {
    expect(format({ level: 50, msg: 'failed', err: { stack: 'Error: x\n    at y' } })).toMatch(
      /^\[03:04:05\] ERROR: failed ?\n( {4}.*\n)* +Error: x\n +at y\n( {4}.*\n)*$/,
    );
  });

  it.each(['\n', '\r', '\u001b[2J', '\u009b2J', '\u2028', '\u202e', '\b', '\\n'])(
    'escapes %j, so that it cannot begin a line or move the cursor',
    (text) => {
      const err = { message: text, stack: `Error: ${text}x` };
      const line = format({ msg: text, field: text, context: text, caller: text, err });

      expect(line).toMatch(/^\[.*\n( {4}.*\n)*$/);
      expect(line.replaceAll('\n', '')).toMatch(/^[\x20-\x7e]*$/);
    },
  );
});

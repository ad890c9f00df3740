import { type Logger, pino } from 'pino';
import { requestFields } from './request-context';
import { formatForTerminal } from './terminal-format';

/**
 * The logger of the service: lines for people when the standard output is a terminal, one JSON
 * object a line otherwise. A line written while a request is handled names the request.
 *
 * @param level of pino
 */
export function createLogger(level: string): Logger {
  return pino({ level, mixin: () => requestFields() ?? {} }, destination());
}

function destination(): { write: (line: string) => void } {
  if (!process.stdout.isTTY) return pino.destination({ fd: 1, sync: true });
  return {
    write: (line) => {
      process.stdout.write(formatForTerminal(line));
    },
  };
}

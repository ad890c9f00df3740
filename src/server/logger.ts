import { type DestinationStream, type Logger, pino } from 'pino';
import { requestFields } from './request-context';
import { standardOutput } from './standard-output';
import type * as terminalFormat from './terminal-format';

/** Where log lines go: the standard output, or the output of a test. */
export interface LogOutput extends DestinationStream {
  readonly isTTY?: boolean;
}

/**
 * The logger of the service. It writes readable lines to a terminal, and one JSON object a line to
 * anything else. Lines about a failed request contain the request id.
 *
 * @param level a level of pino
 */
export function createLogger(level: string, output: LogOutput = process.stdout): Logger {
  const options = { level, mixin: () => requestFields() };
  if (!output.isTTY) return pino(options, output === process.stdout ? standardOutput() : output);
  // Only here, because it takes time to load.
  const { formatForTerminal } = require('./terminal-format') as typeof terminalFormat;
  const write = (line: string): void => {
    output.write(formatForTerminal(line));
  };
  return pino(options, { write });
}

import { type DestinationStream, type Logger, pino } from 'pino';
import { requestFields } from './request-context';
import { standardOutput } from './standard-output';
import { formatForTerminal } from './terminal-format';

/** Where log lines go: the standard output, or what a test reads. */
export interface LogOutput extends DestinationStream {
  readonly isTTY?: boolean;
}

/**
 * The logger of the service: lines for people when the output is a terminal, one JSON object a line
 * otherwise. The line of a request that failed names the request.
 *
 * @param level of pino
 */
export function createLogger(level: string, output: LogOutput = process.stdout): Logger {
  const options = { level, mixin: () => requestFields() ?? {} };
  if (output.isTTY) {
    return pino(options, {
      write: (line) => {
        output.write(formatForTerminal(line));
      },
    });
  }
  return pino(options, output === process.stdout ? standardOutput() : output);
}

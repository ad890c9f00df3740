import { type DestinationStream, type Logger, pino } from 'pino';
import { prettyFactory } from 'pino-pretty';
import { StandardOutput } from './standard-output';

const formatForTerminal = prettyFactory({
  translateTime: 'HH:MM:ss',
  ignore: 'pid,hostname,context',
  messageFormat: '{if context}{context}: {end}{msg}',
  singleLine: true,
});

/** Writes readable lines to a terminal, and one JSON object per line otherwise. */
const output: DestinationStream = process.stdout.isTTY
  ? { write: (line: string) => process.stdout.write(formatForTerminal(line)) }
  : new StandardOutput();

/** @param level a log level of pino */
export function createLogger(level: string): Logger {
  return pino({ level }, output);
}

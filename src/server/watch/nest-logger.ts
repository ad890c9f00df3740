import type { LoggerService } from '@nestjs/common';
import type { Level, Logger } from 'pino';
import { LoggedFailure } from '../../plants/http/failure-log';

/**
 * Nest's startup loggers. They log every startup step, and errors that are also thrown. Nest has no option
 * to silence only these. Their names are undocumented: if Nest renames one, more is logged. Tested with Nest 12.5.1.
 */
// prettier-ignore
const STARTUP_LOGGERS = [
  'NestFactory', 'InstanceLoader', 'RoutesResolver', 'RouterExplorer', 'NestApplication',
  'ExceptionHandler',
];

/** Writes what is logged through Nest's `Logger` with pino. Startup steps are logged at level `debug`. */
export class NestLogger implements LoggerService {
  constructor(private readonly logger: Logger) {}

  readonly log = this.writer('info');
  readonly fatal = this.writer('fatal');
  readonly error = this.writer('error');
  readonly warn = this.writer('warn');
  readonly debug = this.writer('debug');
  readonly verbose = this.writer('trace');

  /**
   * Nest passes the context (the name of the logger) as the last argument, and plain objects of log fields
   * before it. For an error without a stack, the argument before the context is undefined.
   */
  private writer(level: Level): (message: unknown, ...rest: unknown[]) => void {
    return (message, ...rest) => {
      const context = rest.pop() as string | undefined;
      const isStartup = STARTUP_LOGGERS.includes(context ?? '');
      // The code that catches the error reports it.
      if (isStartup && level === 'error') return;
      const actual = isStartup && level === 'info' ? 'debug' : level;
      if (message instanceof LoggedFailure) {
        const fields = Object.assign({ context, err: message.cause }, message);
        this.logger[actual](fields, message.message);
        return;
      }
      const err = message instanceof Error ? message : undefined;
      const fields = rest.filter((each) => typeof each === 'object');
      const texts = [err ? undefined : message, ...rest].filter((each) => typeof each === 'string');
      const text = texts.join(' ') || err?.message;
      this.logger[actual](Object.assign({ context, err }, ...fields), text);
    };
  }
}

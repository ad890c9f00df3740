import type { LoggerService } from '@nestjs/common';
import type { Level, Logger } from 'pino';
import { LoggedFailure } from '../../plants/http/failure-log';

/**
 * The loggers of Nest that tell each step of the start, and its errors, which are thrown too. Nest has no
 * option that sets them apart. Under another name they would only log more.
 */
// prettier-ignore
const START_LOGGERS = [
  'NestFactory', 'InstanceLoader', 'RoutesResolver', 'RouterExplorer', 'NestApplication',
  'ExceptionHandler',
];

/** Writes what is logged through Nest's `Logger` with pino. Steps of the start are for debugging. */
export class NestLogger implements LoggerService {
  constructor(private readonly logger: Logger) {}

  readonly log = this.writer('info');
  readonly fatal = this.writer('fatal');
  readonly error = this.writer('error');
  readonly warn = this.writer('warn');
  readonly debug = this.writer('debug');
  readonly verbose = this.writer('trace');

  /**
   * Nest passes the context, the name of the logger, as the last argument, and plain objects of fields
   * before it. The argument before the context is undefined for an error without a stack.
   */
  private writer(level: Level): (message: unknown, ...rest: unknown[]) => void {
    return (message, ...rest) => {
      const context = rest.pop() as string | undefined;
      const isOfStart = START_LOGGERS.includes(context ?? '');
      // Whoever catches the error reports it.
      if (isOfStart && level === 'error') return;
      const actual = isOfStart && level === 'info' ? 'debug' : level;
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

/*
 * Depends on undocumented behavior of Nest (tested: 12.5.1): which arguments its `Logger` passes on, and the contexts
 * in which it logs the error of a failed start before it throws it.
 */
import type { LoggerService } from '@nestjs/common';
import type { Level, Logger } from 'pino';

/** Parts of Nest that also throw the errors that they log. `main.ts` prints these in one sentence. */
const THROWING_CONTEXTS = ['ExceptionHandler', 'NestApplication'] as (string | undefined)[];

export class NestLogger implements LoggerService {
  constructor(private readonly logger: Logger) {}

  readonly log = this.writer('info');
  readonly fatal = this.writer('fatal');
  readonly error = this.writer('error');
  readonly warn = this.writer('warn');
  readonly debug = this.writer('debug');
  readonly verbose = this.writer('trace');

  /** Nest passes the context (the name of the logger) as the last argument, and objects of log fields before it. */
  private writer(level: Level): (message: unknown, ...rest: unknown[]) => void {
    return (message, ...rest) => {
      const context = rest.pop() as string | undefined;
      if (level === 'error' && THROWING_CONTEXTS.includes(context)) return;
      const error = message instanceof Error ? message : undefined;
      // An error without a stack is a line about its cause. Its properties are fields.
      const err = error?.stack === error?.message ? error?.cause : error;
      const fields = [error, ...rest].filter((each) => typeof each === 'object');
      const texts = [error?.message ?? message, ...rest].filter((each) => typeof each === 'string');
      this.logger[level](Object.assign({ context, err }, ...fields), texts.join(' '));
    };
  }
}

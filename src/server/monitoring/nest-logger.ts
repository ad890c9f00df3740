/*
 * Depends on undocumented behavior of Nest (tested: 12.5.1): which arguments its `Logger` passes on, and the contexts
 * in which it logs the error of a failed start before it throws it.
 */
import type { LoggerService } from '@nestjs/common';
import type { Level, Logger } from 'pino';
import type { FailureLine } from '../../plants/http/failure-log';

/** Parts of Nest that also throw the errors that they log. `main.ts` prints these in one sentence. */
const THROWING_CONTEXTS = ['ExceptionHandler', 'NestApplication'] as (string | undefined)[];

/** Writes what is logged through Nest's `Logger` with pino. */
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
      // Nest always passes the context last. What is left in `rest` are fields and texts of the caller.
      const context = rest.pop() as string | undefined;
      if (level === 'error' && THROWING_CONTEXTS.includes(context)) return;
      const error = message instanceof Error ? message : undefined;
      const err = (error as Partial<FailureLine> | undefined)?.hasOnlyCause ? error?.cause : error;
      // The properties of an error are fields, too, except the one that only tells what to log.
      const fields = [error, ...rest].filter((each) => typeof each === 'object');
      const texts = [error?.message ?? message, ...rest].filter((each) => typeof each === 'string');
      const line = Object.assign({ context, err }, ...fields, {
        hasOnlyCause: undefined,
      }) as object;
      this.logger[level](line, texts.join(' '));
    };
  }
}

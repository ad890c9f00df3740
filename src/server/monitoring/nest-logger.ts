import type { LoggerService } from '@nestjs/common';
import type { Level, Logger } from 'pino';

/** Writes what is logged through Nest's `Logger` with pino. */
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
      const err = message instanceof Error ? message : undefined;
      // The properties of an error are fields too.
      const fields = [err, ...rest].filter((each) => typeof each === 'object');
      const texts = [err ? undefined : message, ...rest].filter((each) => typeof each === 'string');
      const text = texts.join(' ') || err?.message;
      this.logger[level](Object.assign({ context, err }, ...fields), text);
    };
  }
}

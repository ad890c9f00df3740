import type { LoggerService } from '@nestjs/common';
import type { Level, Logger } from 'pino';

/** Sends Nest's log lines, and those of everybody who uses Nest's `Logger`, through pino. */
export class NestLogger implements LoggerService {
  constructor(private readonly logger: Logger) {}

  log(message: unknown, ...rest: unknown[]): void {
    this.write('info', message, rest);
  }
  fatal(message: unknown, ...rest: unknown[]): void {
    this.write('fatal', message, rest);
  }
  error(message: unknown, ...rest: unknown[]): void {
    this.write('error', message, rest);
  }
  warn(message: unknown, ...rest: unknown[]): void {
    this.write('warn', message, rest);
  }
  debug(message: unknown, ...rest: unknown[]): void {
    this.write('debug', message, rest);
  }
  verbose(message: unknown, ...rest: unknown[]): void {
    this.write('trace', message, rest);
  }

  /**
   * Nest appends the context, the name of who logs, as the last argument; before it stands undefined
   * where an error has no stack.
   */
  private write(level: Level, message: unknown, rest: unknown[]): void {
    const context = rest.pop();
    const more = rest.filter((each) => each !== undefined).map(String);
    if (message instanceof Error) {
      this.logger[level]({ context, err: message }, more.join(' ') || message.message);
    } else {
      this.logger[level]({ context }, [String(message), ...more].join(' '));
    }
  }
}

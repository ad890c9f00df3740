import type { LoggerService } from '@nestjs/common';
import type { Level, Logger } from 'pino';

/** The loggers of Nest for errors of the start, which it also throws. They are reported where caught. */
const START_FAILURES = ['ExceptionHandler', 'NestApplication'];

/** The loggers of Nest that tell each step of the start. Their lines are for debugging. */
const START_STEPS = [
  ...['NestFactory', 'InstanceLoader', 'RoutesResolver', 'RouterExplorer', 'NestApplication'],
];

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
   * Nest passes the context, the name of the logger, as the last argument. The argument before it is
   * undefined for an error without a stack.
   */
  private writer(level: Level): (message: unknown, ...rest: unknown[]) => void {
    return (message, ...rest) => {
      // A bundler may put `_` before the name of a class that refers to itself.
      const context = rest.pop()?.toString().replace(/^_/, '');
      if (level === 'error' && START_FAILURES.includes(context ?? '')) return;
      const isStep = level === 'info' && START_STEPS.includes(context ?? '');
      const actual = isStep ? 'debug' : level;
      const more = rest.filter((each) => each !== undefined).map(String);
      if (message instanceof Error) {
        this.logger[actual]({ context, err: message }, more.join(' ') || message.message);
      } else {
        this.logger[actual]({ context }, [String(message), ...more].join(' '));
      }
    };
  }
}

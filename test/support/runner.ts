import { readFileSync } from 'node:fs';
import TestRunner from 'jest-runner';

type Configuration = ConstructorParameters<typeof TestRunner>[0];
type Context = ConstructorParameters<typeof TestRunner>[1];
type Parameters = globalThis.Parameters<TestRunner['runTests']>;

/**
 * Runs suites side by side, and then, one after the other, those that must have the machine to
 * themselves. Such a suite says so by `@alone` in the comment that its file starts with.
 */
export default class extends TestRunner {
  /** Adds workers to those of the configuration, one a processor, since many suites wait a lot. */
  constructor(configuration: Configuration, context: Context) {
    super({ ...configuration, maxWorkers: configuration.maxWorkers + 2 }, context);
  }

  override async runTests(...[tests, watcher, options]: Parameters): Promise<void> {
    const alone = tests.filter(({ path }) => mustRunAlone(path));
    const others = tests.filter((test) => !alone.includes(test));
    if (others.length > 0) await super.runTests(others, watcher, options);
    if (alone.length > 0) await super.runTests(alone, watcher, { ...options, serial: true });
  }
}

function mustRunAlone(path: string): boolean {
  const [comment = ''] = readFileSync(path, 'utf8').split('*/', 1);
  return comment.startsWith('/**') && comment.includes('@alone');
}

import { ModernFakeTimers } from '@jest/fake-timers';
import { ModuleMocker } from 'jest-mock';
import type Runtime from 'jest-runtime';

type Environment = ConstructorParameters<typeof Runtime>[1];
type FakeTimersOptions = ConstructorParameters<typeof ModernFakeTimers>[0];

const GLOBAL = globalThis as unknown as Environment['global'] & typeof globalThis;

/** Jest wraps it for each suite. */
const exit = process.exit.bind(process);

/**
 * Runs suites in the context of their process, which `runtime.js` needs. What a suite leaves in it is
 * gone before the next: globals, variables, listeners, mocks and fake timers.
 */
export default class implements Environment {
  readonly global: Environment['global'] = GLOBAL;
  readonly moduleMocker = new ModuleMocker(GLOBAL);
  readonly fakeTimers = null;
  readonly fakeTimersModern: ModernFakeTimers;
  private readonly globals = new Set(Reflect.ownKeys(globalThis));
  private readonly console = console;
  private readonly variables = { ...process.env };
  private readonly listeners = new Set(process.eventNames().flatMap(listenersOf));

  constructor({ projectConfig }: { projectConfig: FakeTimersOptions['config'] }) {
    // Given the global object itself, they also replace `node:timers/promises`, with which tests wait.
    const global = new Proxy(GLOBAL, {});
    this.fakeTimersModern = new ModernFakeTimers({ config: projectConfig, global });
  }

  setup(): Promise<void> {
    return Promise.resolve();
  }

  teardown(): Promise<void> {
    this.fakeTimersModern.dispose();
    this.moduleMocker.restoreAllMocks();
    for (const key of Reflect.ownKeys(globalThis)) {
      if (!this.globals.has(key)) Reflect.deleteProperty(globalThis, key);
    }
    globalThis.console = this.console;
    process.exit = exit;
    for (const name of Object.keys(process.env)) {
      if (!(name in this.variables)) Reflect.deleteProperty(process.env, name);
    }
    Object.assign(process.env, this.variables);
    for (const event of process.eventNames()) {
      for (const listener of listenersOf(event)) {
        if (!this.listeners.has(listener)) process.removeListener(event, listener);
      }
    }
    return Promise.resolve();
  }

  exportConditions(): string[] {
    return ['node', 'node-addons'];
  }

  getVmContext(): object {
    return globalThis;
  }
}

function listenersOf(event: string | symbol) {
  return process.rawListeners(event) as (() => void)[];
}

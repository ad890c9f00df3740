import { Logger } from '@nestjs/common';
import SuiteEnvironment from './environment';

describe('The environment of a suite', () => {
  it('leaves nothing of the suite to the next', async () => {
    const environment = new SuiteEnvironment({ projectConfig: {} as never });
    environment.moduleMocker.spyOn(Logger.prototype, 'log');
    Reflect.set(globalThis, 'leftGlobal', true);
    process.env.LEFT_VARIABLE = 'left';
    process.on('SIGUSR2', stay);

    await environment.teardown();

    expect(isMocked(Logger.prototype, 'log')).toBe(false);
    expect(globalThis).not.toHaveProperty('leftGlobal');
    expect(process.env).not.toHaveProperty('LEFT_VARIABLE');
    expect(process.listeners('SIGUSR2')).not.toContain(stay);
  });
});

function stay(): void {
  // A process ends on this signal unless something listens.
}

function isMocked(object: object, method: string): boolean {
  return jest.isMockFunction(Reflect.get(object, method));
}

import { setTimeout } from 'node:timers/promises';
import { expectExactlyOnce } from '../client/killed-service';
import { useServiceHome } from '../support/service-process';

describe('kill -9 each second under 32 callers with the client', () => {
  const home = useServiceHome();

  it('leaves each creation answered, and stored exactly once', async () => {
    await expectExactlyOnce(home, 30, () => setTimeout(1000));
  }, 300_000);
});

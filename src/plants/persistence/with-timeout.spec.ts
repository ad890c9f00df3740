import { withTimeout } from './with-timeout';

it('withTimeout rejects when the work does not end within the time limit', async () => {
  const never = new Promise<never>(() => undefined);

  await expect(withTimeout(never, 1)).rejects.toThrow('no response within the time limit');
});

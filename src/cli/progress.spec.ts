import { Progress } from './progress';

it('Progress prints the remaining time every ten seconds when stderr is not a terminal', () => {
  jest.useFakeTimers();
  const written: unknown[] = [];
  jest.spyOn(process.stderr, 'write').mockImplementation((text) => written.push(text) > 0);
  process.stderr.isTTY = false;
  const progress = new Progress('plants');

  for (let second = 1; second <= 25; second++) {
    jest.advanceTimersByTime(1000);
    progress.show(1000 * second, second / 100);
  }

  expect(written).toEqual([
    '10,000 plants, 1,000/s, 90 s left\n',
    '20,000 plants, 1,000/s, 80 s left\n',
  ]);
});

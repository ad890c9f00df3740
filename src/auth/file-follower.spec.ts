import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { FileFollower } from './file-follower';
import { pass, releaseClock, stopClock } from '../../test/support/clock';
import { useFolder } from '../../test/support/folder';

describe('a follower of files', () => {
  const folder = useFolder();
  let paths: { one: string; two: string };
  let follower: FileFollower<string>;
  const changed = jest.fn();
  const failed = jest.fn();
  beforeEach(() => {
    stopClock();
    paths = { one: join(folder, 'one'), two: join(folder, 'two') };
    for (const path of Object.values(paths)) writeFileSync(path, 'old');
  });
  afterEach(() => {
    follower.stop();
    jest.resetAllMocks();
    releaseClock();
  });

  function follow(): void {
    follower = new FileFollower(Object.values(paths), (one: Buffer, two: Buffer) => {
      if (one.includes('invalid')) throw new Error('one is invalid');
      return `${one.toString()} ${two.toString()}`;
    });
    follower.start({ changed, failed });
  }

  /** The follower reads the files twice more. */
  async function readings(): Promise<void> {
    for (let time = 0; time < 2; time++) {
      pass(1000);
      while (jest.getTimerCount() === 0) await new Promise((resolve) => setImmediate(resolve));
    }
  }

  it('has the value of all, and a new one when any of them changes', async () => {
    follow();
    expect(follower.current).toBe('old old');

    writeFileSync(paths.two, 'new');
    await readings();
    await readings();

    expect(follower.current).toBe('old new');
    expect(changed.mock.calls).toEqual([['old new']]);
  });

  it('keeps the last valid value, and reports each fault once', async () => {
    follow();

    writeFileSync(paths.one, 'invalid');
    await readings();
    await readings();

    expect(follower.current).toBe('old old');
    expect(failed.mock.calls).toEqual([['one is invalid']]);
  });

  it('reads a pipe once, because it gives its content only once', async () => {
    paths.two = join(folder, 'pipe');
    execFileSync('mkfifo', [paths.two]);
    const writer = new Worker(
      `require('node:fs').writeFileSync(${JSON.stringify(paths.two)}, 'piped')`,
      { eval: true },
    );

    follow();

    expect(follower.current).toBe('old piped');
    expect(jest.getTimerCount()).toBe(0);
    await writer.terminate();
  });
});

import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { FileFollower } from './file-follower';
import { releaseClock, stopClock } from '../../../test/support/clock';
import { useFolder } from '../../../test/support/folder';

const folder = useFolder();
beforeEach(stopClock);
afterEach(releaseClock);

it('a follower of files reads a pipe once, because it gives its content only once', async () => {
  const [file, pipe] = [join(folder, 'file'), join(folder, 'pipe')];
  writeFileSync(file, 'old');
  execFileSync('mkfifo', [pipe]);
  const script = `require('node:fs').writeFileSync(${JSON.stringify(pipe)}, 'piped')`;
  const writer = new Worker(script, { eval: true });

  const follower = new FileFollower([file, pipe], (...contents) => contents.join(' '));
  follower.start({ changed: jest.fn(), failed: jest.fn() });

  expect(follower.current).toBe('old piped');
  expect(jest.getTimerCount()).toBe(0);
  follower.stop();
  await writer.terminate();
});

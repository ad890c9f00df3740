import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { FileWatcher } from './file-watcher';
import { restoreClock, stopClock } from '../../../test/support/clock';
import { useFolder } from '../../../test/support/folder';
import { describeOnLinux } from '../../../test/support/run';

const folder = useFolder();
beforeEach(stopClock);
afterEach(restoreClock);

describeOnLinux(() => {
  it('FileWatcher reads a pipe once, because its content can be read only once', async () => {
    const [file, pipe] = [join(folder, 'file'), join(folder, 'pipe')];
    writeFileSync(file, 'old');
    execFileSync('mkfifo', [pipe]);
    const script = `require('node:fs').writeFileSync(${JSON.stringify(pipe)}, 'piped')`;
    const writer = new Worker(script, { eval: true });

    const watcher = new FileWatcher([file, pipe], (...contents) => contents.join(' '));
    watcher.start({ onChange: jest.fn(), onError: jest.fn() });

    expect(watcher.current).toBe('old piped');
    expect(jest.getTimerCount()).toBe(0);
    watcher.stop();
    await writer.terminate();
  });
});

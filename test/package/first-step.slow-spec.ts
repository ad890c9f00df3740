import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { useFolder } from '../support/folder';
import { recordProcess } from '../support/run-folder';
import { shell } from '../support/run';

/** What a newcomer types first, in a clean copy. It asks the registry, so it is no part of npm test. */

const PROJECT = join(__dirname, '../..');
/** Without the Node.js that npm puts first for scripts: a newcomer has the machine's. */
const PATH = process.env.PATH?.split(delimiter).filter((part) => !part.includes('node_modules'));

const folder = useFolder();

describe('npm ci && npm start', () => {
  it('stores a plant, from at most 500 MB', async () => {
    const files = execFileSync('git', ['ls-files', '-z'], { cwd: PROJECT, encoding: 'utf8' });
    for (const file of files.split('\0').filter((name) => name !== '')) {
      cpSync(join(PROJECT, file), join(folder, file));
    }
    const env = { PATH: PATH?.join(delimiter), HOME: process.env.HOME, PORT: '0' };

    const npm = spawn('sh', ['-c', 'npm ci && exec npm start'], {
      cwd: folder,
      env,
      detached: true,
    });
    recordProcess(npm);
    const closed = once(npm, 'close');
    let output = '';
    npm.stderr.on('data', (chunk) => (output += String(chunk)));
    npm.stdout.on('data', (chunk) => (output += String(chunk)));
    try {
      let curl: string | undefined;
      while (curl === undefined) {
        await Promise.race([
          once(npm.stdout, 'data'),
          once(npm.stderr, 'data'),
          closed.then(() => Promise.reject(new Error(output))),
        ]);
        curl = /^ *(curl .*)\n/m.exec(output)?.[1];
      }
      const answer = await shell(curl, { env });
      const [size = ''] = execFileSync('du', ['-sm', 'node_modules'], {
        cwd: folder,
        encoding: 'utf8',
      }).split('\t');
      expect(answer.stdout).toMatch(/^HTTP\/1.1 200 [^]*\r\n\r\n{"name":"Fern","tag":"shade"}$/);
      expect(Number(size)).toBeLessThanOrEqual(500);
    } finally {
      // npm, its shell and the service.
      if (npm.pid !== undefined && npm.exitCode === null) process.kill(-npm.pid);
      await closed;
    }
  }, 600_000);
});

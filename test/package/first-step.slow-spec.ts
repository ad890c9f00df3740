/** Runs the first commands of a new user in a clean copy. `npm test` does not run it: it needs the registry. */
import { delimiter } from 'node:path';
import { useFolder } from '../support/folder';
import { describeWith, shell } from '../support/run';
import { TestProcess } from '../support/test-process';
import { PROJECT, run } from './packed';

const folder = useFolder();

describeWith('curl', () => {
  it('npm ci && npm start run a service that stores a plant, with at most 500 MB of packages', async () => {
    run(PROJECT, 'sh', '-ec', `git ls-files -z | xargs -0 cp --parents -t ${folder}`);
    // Removes the Node.js that npm puts first for scripts: a new user has the Node.js of the machine.
    const path = process.env.PATH?.split(delimiter).filter(
      (part) => !part.includes('node_modules'),
    );
    const env = { PATH: path?.join(delimiter), HOME: process.env.HOME, PORT: '0' };

    // `setsid` creates a process group for npm, its shell and the service. Without scripts, npm runs no `prestart`.
    const command = [
      'setsid',
      'sh',
      '-c',
      'exec 2>&1; npm ci && npm_config_ignore_scripts=true exec npm start',
    ];
    const npm = new TestProcess(command, { cwd: folder, env });
    try {
      const [, curl = ''] = await npm.waitForOutput(/^ *(curl .*)\n/m);
      const response = await shell(curl, { env });
      const [size = ''] = run(folder, 'du', '-sm', 'node_modules').split('\t');

      expect(response.stdout).toMatch(/^HTTP\/1.1 200 [^]*\r\n\r\n{"name":"Fern"}$/);
      expect(Number(size)).toBeLessThanOrEqual(500);
      // npm lists packages whose install scripts are neither allowed nor denied.
      expect(npm.stdout).not.toContain('install scripts');
    } finally {
      if (npm.child.pid !== undefined && npm.child.exitCode === null) process.kill(-npm.child.pid);
      await npm.end();
    }
  });
});

/** Runs the scripts that build while a developer works, in a copy of the sources. `npm test` does not run it: it takes a minute. */
import { globSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { useFolder } from '../support/folder';
import { TestProcess } from '../support/test-process';
import { PROJECT, run } from './packed';

const folder = useFolder();
const listFiles = () => globSync('**/*.*', { cwd: join(folder, 'dist') }).toSorted();

it.each(['start:dev', 'start:debug'])('npm run %s leaves all files of a build', async (script) => {
  const sources = "git ls-files -z src tools '*.json' | xargs -0 cp --parents -t";
  run(PROJECT, 'sh', '-ec', `${sources} ${folder}`);
  symlinkSync(join(PROJECT, 'node_modules'), join(folder, 'node_modules'));
  run(folder, 'npm', 'run', '--silent', 'build');
  const built = listFiles();

  // `setsid` creates a process group for npm, its shell, the compiler and the service.
  const env = { PATH: process.env.PATH, PORT: '0' };
  const npm = new TestProcess(['setsid', 'npm', 'run', script], { cwd: folder, env });
  await npm.waitForOutput(/Listening on/);
  const watched = listFiles().filter((name) => !name.endsWith('.map'));
  if (npm.child.pid !== undefined) process.kill(-npm.child.pid, 'SIGKILL');
  await npm.end();

  expect(built).toContain('client/package.json');
  expect(watched).toEqual(built);
});

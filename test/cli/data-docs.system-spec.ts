/** Compares the output of the commands in docs/data.md with what they print. Needs sqlite3. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolder } from '../support/folder';
import { CLI_PATH } from '../support/plant-store';
import { describeWith, shell } from '../support/run';
import { useServiceHome } from '../support/service-process';

const PAGE = readFileSync(join(__dirname, '../../docs/data.md'), 'utf8');

/** The commands that docs/data.md shows with their output, in order. */
const examples = [...PAGE.matchAll(/```sh\n([^`]*)```\n\n```\n([^`]*)```/g)].map(
  ([, commands = '', output = '']) => ({ commands, output }),
);

describeWith('sqlite3', () => {
  const home = useServiceHome();

  it('docs/data.md shows the actual output of the commands', async () => {
    const { folder } = home;
    const bin = makeFolder();
    const script = `#!/bin/sh\nexec "${process.execPath}" "${CLI_PATH}" "$@"\n`;
    writeFileSync(join(bin, 'plant-store'), script, { mode: 0o755 });
    const environment: NodeJS.ProcessEnv = { DATABASE_URL: 'sqlite:data/plants.db' };

    const printed: string[] = [];
    for (const { commands } of examples) {
      if (commands.includes('health')) {
        const service = await home.start(environment);
        environment.PORT = (await service.url()).port;
      }
      const lines = `cd '${folder}'\nPATH='${bin}':$PATH\nexec 2>&1\n${commands}`;
      const { stdout } = await shell(lines, { env: environment });
      printed.push(
        stdout
          .replaceAll(folder, '/srv')
          .replaceAll(/(?<=before-)\d{17}/g, '20270131120000000')
          // The lines of CSV output end with CR LF, the lines of the page do not.
          .replaceAll('\r\n', '\n'),
      );
    }

    expect(printed.length).toBeGreaterThanOrEqual(8);
    expect(printed).toEqual(examples.map(({ output }) => output));
  });
});

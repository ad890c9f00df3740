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
type Example = (typeof examples)[number];
const needsSqlite3 = ({ commands }: Example) => commands.includes('sqlite3');

describe('docs/data.md', () => {
  const home = useServiceHome();

  async function expectOutput(shown: readonly Example[]): Promise<void> {
    const { folder } = home;
    const bin = makeFolder();
    const script = `#!/bin/sh\nexec "${process.execPath}" "${CLI_PATH}" "$@"\n`;
    writeFileSync(join(bin, 'plant-store'), script, { mode: 0o755 });
    const environment: NodeJS.ProcessEnv = { DATABASE_URL: 'sqlite:data/plants.db' };

    const printed: string[] = [];
    for (const { commands } of shown) {
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

    expect(printed).toEqual(shown.map(({ output }) => output));
  }

  it('shows the actual output of the commands', async () => {
    const shown = examples.filter((each) => !needsSqlite3(each));

    expect(shown.length).toBeGreaterThanOrEqual(6);
    await expectOutput(shown);
  });

  describeWith('sqlite3', () => {
    it('shows the actual output of the commands with sqlite3', async () => {
      // The first example creates the plants that the others show.
      await expectOutput([...examples.slice(0, 1), ...examples.filter(needsSqlite3)]);
    });
  });
});

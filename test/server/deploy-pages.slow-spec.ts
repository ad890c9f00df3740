/** Runs the shell lines of the pages about deploying. `stand-in.sh` stands in for Docker, kubectl and systemd. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { TOKEN } from '../support/application';
import { useFolder } from '../support/folder';
import { shell } from '../support/run';
import { programEnvironment } from '../support/run-folder';

const ROOT = join(__dirname, '../..');
const PAGES = ['README.md', 'compose.md', 'kubernetes.md', 'systemd.md'];
const PROGRAMS =
  'docker kubectl systemctl journalctl sudo nginx npm pg_dump pg_restore plant-store';

const folder = useFolder();

/** Returns the blocks of shell lines of a page, in kubernetes.md with the changes for SQLite that it states. */
function blocksOf(page: string): string[] {
  const text = readFileSync(join(ROOT, 'docs/deploy', page), 'utf8')
    .replaceAll(' --from-file=database-url', '')
    .replaceAll('kubernetes-postgresql.yaml', 'kubernetes.yaml')
    .replaceAll('deployment/', 'statefulset/');
  return [...text.matchAll(/```sh\n([^]*?)```/g)].map(([, lines = '']) => lines);
}

/** Repeats each block, then the page. The container of README.md must be removed before it is started again. */
function repeat(page: string): string {
  const blocks = blocksOf(page);
  const first = page === 'README.md' ? blocks : blocks.flatMap((block) => [block, block]);
  return [...first, ...blocks].join('');
}

/**
 * Runs lines in a new clone, with folders instead of those of the system and with the commands of the clone or those that
 * the lines install. Returns the errors, or undefined.
 */
async function runLines(lines: string): Promise<string | undefined> {
  const script = `set -eu
    mkdir -p bin state etc/nginx/conf.d etc/systemd/system usr/local/bin var/lib/plant-store
    for name in ${PROGRAMS}; do ln -sf ${ROOT}/test/support/stand-in.sh bin/$name; done
    mkdir clone && ln -s ${ROOT}/node_modules clone
    cd ${ROOT}
    cp -r --parents compose.yaml package.json dist docs/deploy ${folder}/clone
    cd ${folder}/clone
    set -x
    ${lines.replaceAll(/(?<![\w/])\/(?=(opt|etc|usr\/local|var\/lib)\/)/g, `${folder}/`)}`;
  const installation = lines.includes('/opt/plant-store') ? 'opt/plant-store' : 'clone';
  const env = {
    ...programEnvironment(),
    PATH: `${folder}/bin:${process.env.PATH}`,
    AUTH_TOKENS: TOKEN,
    DATABASE_URL: `sqlite:${folder}/var/lib/plant-store/plants.db`,
    STATE: join(folder, 'state'),
    UNITS: join(folder, 'etc/systemd/system'),
    NODE: process.execPath,
    CLI: join(folder, installation, 'dist/cli/plant-store.js'),
  };
  const { code, stderr } = await shell(script, { cwd: folder, env });
  return code === 0 ? undefined : stderr;
}

it.each(PAGES)('the lines of %s run twice', async (page) => {
  expect(await runLines(repeat(page))).toBeUndefined();
});

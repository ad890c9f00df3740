/**
 * Runs the `docker` commands of docs/deploy: builds the image and runs it as an ordinary user, with a read-only
 * root file system and the data in a volume. It needs Docker.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { version } from '../../package.json';
import { findFreePort } from '../support/free-port';
import { shell } from '../support/run';
import { until } from '../support/until';

const PROJECT = join(__dirname, '../..');
const read = (file: string): string => readFileSync(join(PROJECT, file), 'utf8');
const [, BASE = ''] = /^FROM (\S+)$/m.exec(read('Dockerfile')) ?? [];
/** The name of the container and of the volume, which is unique on this machine. */
const NAME = `plants-${process.pid}`;
const lines = read('docs/deploy/README.md').match(/^docker .*$/gm) ?? [];
const [build = '', createToken = '', start = '', health = '', stop = '', remove = ''] = lines.map(
  (line) => line.replaceAll(/\bplants\b/g, NAME),
);

interface Image {
  readonly Size: number;
  readonly Config: { readonly User: string; readonly Volumes: Record<string, object> };
}

let token: string;
let url: URL;

/** Runs a command in the project, and returns its output. */
async function run(line: string): Promise<string> {
  const { code, stdout, stderr } = await shell(line, { cwd: PROJECT, env: process.env });
  if (code !== 0) throw new Error(`${line}: ${code}\n${stderr}`);
  return stdout;
}

beforeAll(async () => {
  await run(build);
  token = (await run(createToken)).trim();
  const port = await findFreePort();
  url = new URL(`http://127.0.0.1:${port}`);
  await run(start.replace('127.0.0.1:3000:3000', `127.0.0.1:${port}:${port} -e PORT=${port}`));
  await until(() => run(health).then(Boolean, () => false));
});

afterAll(() => run(`${stop}; ${remove} && docker volume rm ${NAME}`));

it('the documented commands build and run the image, which adds less than 100 MB and runs as an ordinary user', async () => {
  await run(`docker image inspect ${BASE} || docker pull ${BASE}`);
  const inspected = await run(`docker image inspect ${BASE} plant-store:${version}`);
  const [base, image] = JSON.parse(inspected) as [Image, Image];

  expect(lines).toHaveLength(6);
  expect(image.Size - base.Size).toBeLessThan(100e6);
  expect(image.Config.User).toBe('10001:10001');
  expect(Object.keys(image.Config.Volumes)).toEqual(['/data']);
});

it('the image stores plants in its volume with a read-only root file system, and exits with code 0', async () => {
  const plant = '{"id":9007199254740993,"name":"Fern"}';
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const response = await fetch(new URL('/plants', url), { method: 'POST', headers, body: plant });
  const page = await fetch(new URL('/docs', url));
  const written = run(`docker exec ${NAME} touch /opt/plant-store/x`);
  await expect(written).rejects.toThrow('Read-only file system');
  await run(stop);

  expect([response.status, await response.text(), page.status]).toEqual([
    200,
    '{"name":"Fern"}',
    200,
  ]);
  expect(await run(`docker inspect ${NAME} --format '{{.State.ExitCode}}'`)).toBe('0\n');
  const exported = `docker run --rm -v ${NAME}:/data plant-store:${version} export`;
  expect(await run(exported)).toBe(`${plant}\n`);
});

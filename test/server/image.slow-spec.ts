import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { version } from '../../package.json';
import { makeFolder, removeFolder } from '../support/folder';
import { freePort } from '../support/free-port';
import { isOnPath, run, type Run } from '../support/run';
import { until } from '../support/until';

/**
 * Runs the lines of docs/deploy that have `docker`, with Podman, which takes the same: builds the
 * Dockerfile, and runs the image read-only, as an ordinary user, with the data in a volume. It needs
 * root, and Debian's podman, crun and mmdebstrap. Instead of a registry's, the base image is made here
 * from Debian's packages and the Node.js that npm installed. Images, containers and volumes are in a
 * store of the test's own.
 */

const PROJECT = join(__dirname, '../..');
const CERTIFICATES = '/etc/ssl/certs/ca-certificates.crt';

/** The image that the Dockerfile stands on. */
const [, BASE = ''] = /^FROM (\S+)$/m.exec(readFileSync(join(PROJECT, 'Dockerfile'), 'utf8')) ?? [];
const page = readFileSync(join(PROJECT, 'docs/deploy/README.md'), 'utf8');
const lines = page.match(/^docker .*$/gm) ?? [];
const [build = '', createToken = '', start = '', health = '', stop = ''] = lines;

interface Image {
  readonly Size: number;
  readonly Config: { readonly User: string; readonly Volumes: Record<string, object> };
  readonly Healthcheck: { readonly Test: string[] };
}

const folder = makeFolder();
const DOCKER = join(folder, 'bin/docker');
let base: Image;
let image: Image;
let token: string;
let url: URL;

beforeAll(async () => {
  const missing = ['podman', 'crun', 'mmdebstrap'].filter((name) => !isOnPath(name));
  if (process.getuid?.() !== 0) missing.push('root rights');
  if (missing.length > 0) throw new Error(`npm run test:image needs ${missing.join(', ')}.`);

  chmodSync(folder, 0o755);
  makeStore();
  await makeBaseImage();
  await docker(build);
  token = (await docker(createToken)).trim();
  url = new URL(`http://127.0.0.1:${await freePort()}`);
  // The container has the network of the machine, where the documented port may be taken.
  await docker(start.replace(' -p ', ` -e HOST=127.0.0.1 -e PORT=${url.port} -p `));
  await until(async () => (await shell(health)).code === 0);
  const inspect = `docker image inspect ${BASE} plant-store:${version}`;
  [base, image] = JSON.parse(await docker(inspect)) as [Image, Image];
});

afterAll(async () => {
  // Without it, `docker` would be another one, which has other containers.
  if (existsSync(DOCKER)) await shell('docker rm --force --all');
  removeFolder(folder);
});

describe('the image', () => {
  it('is made and run by all lines of the page; adds less than 100 MB, and runs as an ordinary user', () => {
    expect(lines).toHaveLength(5);
    expect(image.Size - base.Size).toBeLessThan(100e6);
    expect(image.Config.User).toBe('10001:10001');
    expect(Object.keys(image.Config.Volumes)).toEqual(['/data']);
  });

  it('stores plants, with its root file system read-only', async () => {
    const answer = await fetch(new URL('/plants', url), {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: '{"id":9007199254740993,"name":"Fern"}',
    });

    expect([answer.status, await answer.text()]).toEqual([200, '{"name":"Fern"}']);
    const written = await shell('docker exec plants touch /opt/plant-store/x');
    expect(written.stderr).toContain('Read-only file system');
    expect((await fetch(new URL('/docs', url))).status).toBe(200);
  });

  it('is healthy by its own check', async () => {
    const [kind, ...check] = image.Healthcheck.Test;

    expect(kind).toBe('CMD');
    expect(await shell(`docker exec plants ${check.join(' ')}`)).toMatchObject({ code: 0 });
  });

  it('ends with 0 when it is stopped, with all in the volume', async () => {
    await docker(stop);

    expect(await docker("docker inspect plants --format '{{.State.ExitCode}}'")).toBe('0\n');
    const volume = await docker("docker volume inspect plants --format '{{.Mountpoint}}'");
    expect(existsSync(join(volume.trim(), 'plants.db'))).toBe(true);
  });
});

/** A store for Podman, and a `docker` that uses it, in the network of the machine. */
function makeStore(): void {
  mkdirSync(join(folder, 'bin'));
  symlinkSync('/usr/bin/podman', DOCKER);
  const store = `[storage]\ndriver = "overlay"\ngraphroot = "${folder}/images"\nrunroot = "${folder}/run"\n`;
  writeFileSync(join(folder, 'storage.conf'), store);
  const limits = 'default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]';
  const engine = `cgroup_manager = "cgroupfs"\nevents_logger = "file"\nlock_type = "file"\ntmp_dir = "${folder}/tmp"`;
  writeFileSync(
    join(folder, 'containers.conf'),
    `[containers]\ncgroups = "disabled"\nnetns = "host"\n${limits}\n[engine]\n${engine}\n`,
  );
}

/** Debian with Node.js and npm, under the name that the Dockerfile takes it by. */
async function makeBaseImage(): Promise<void> {
  const debian = join(folder, 'debian.tar');
  const excluded = ['doc', 'info', 'locale', 'man'].map((name) => `/usr/share/${name}/*`);
  execFileSync(
    'mmdebstrap',
    // prettier-ignore
    [
      '--quiet', '--variant=minbase', 'trixie',
      ...excluded.map((path) => `--dpkgopt=path-exclude=${path}`),
      debian, 'http://deb.debian.org/debian',
    ],
    { stdio: 'inherit' },
  );
  await docker(`docker import ${debian} debian:trixie-slim`);

  const context = join(folder, 'node');
  const local = join(context, 'usr/local');
  for (const name of ['bin', 'etc']) mkdirSync(join(local, name), { recursive: true });
  cpSync(process.execPath, join(local, 'bin/node'));
  // The npm that runs this test: `npm root --global` depends on the Node.js that comes first in PATH.
  const npm = join(process.env.npm_execpath ?? '', '../..');
  cpSync(npm, join(local, 'lib/node_modules/npm'), { recursive: true, dereference: true });
  symlinkSync('../lib/node_modules/npm/bin/npm-cli.js', join(local, 'bin/npm'));
  let settings = `registry=${execFileSync('npm', ['config', 'get', 'registry'], { encoding: 'utf8' })}`;
  if (existsSync(CERTIFICATES)) {
    cpSync(CERTIFICATES, join(context, CERTIFICATES));
    settings += `cafile=${CERTIFICATES}\n`;
  }
  writeFileSync(join(local, 'etc/npmrc'), settings);
  const install = 'apt-get update -qq && apt-get install -qqy --no-install-recommends libatomic1';
  writeFileSync(
    join(context, 'Dockerfile'),
    `FROM debian:trixie-slim\nRUN ${install}\nCOPY usr /usr\nCOPY etc* /etc/\n`,
  );
  await docker(`docker build -t ${BASE} ${context}`);
}

/** Runs a line in the project, and gives back its output. */
async function docker(line: string): Promise<string> {
  const { code, stdout, stderr } = await shell(line);
  if (code !== 0) throw new Error(`${line}: ${code}\n${stderr}`);
  return stdout;
}

/** crun refuses a machine with both versions of control groups mounted, so it is shown one. */
function shell(line: string): Promise<Run> {
  const script = `umount /sys/fs/cgroup/unified 2>/dev/null; ${line}`;
  const env = {
    ...process.env,
    PATH: `${folder}/bin:${process.env.PATH}`,
    CONTAINERS_CONF: `${folder}/containers.conf`,
    CONTAINERS_STORAGE_CONF: `${folder}/storage.conf`,
    // The image's check of health is one of Docker's format.
    BUILDAH_FORMAT: 'docker',
    BUILDAH_ISOLATION: 'chroot',
  };
  return run('unshare', ['--mount', 'sh', '-c', script], { cwd: PROJECT, env });
}

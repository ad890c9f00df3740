import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { TOKEN } from '../support/application';
import { makeFolder, removeFolder } from '../support/folder';
import { freePort } from '../support/free-port';
import { run, type Run } from '../support/run';

/**
 * Builds the Dockerfile and runs the image: read-only, as an ordinary user, with the data in a
 * volume. It needs root, and Debian's buildah, crun and mmdebstrap. Instead of a registry's, the
 * base images are made here from Debian's packages and the Node.js that npm installed.
 */

const PROJECT = join(__dirname, '../..');
const IMAGE = 'localhost/plant-store-test';
const DEBIAN = 'docker.io/library/debian:trixie-slim';
const NODE = 'docker.io/library/node:26-slim';
const CERTIFICATES = '/etc/ssl/certs/ca-certificates.crt';
const CONTAINER = `plant-store-${process.pid}`;

interface ImageConfig {
  readonly User: string;
  readonly Env: string[];
  readonly Entrypoint: string[];
  readonly WorkingDir: string;
  readonly Volumes: Record<string, object>;
  readonly Healthcheck: { readonly Test: string[] };
}

let folder: string;
let config: ImageConfig;
let running: ChildProcess | undefined;
let output = '';
let url: URL;
let workingContainer: string | undefined;

beforeAll(async () => {
  const missing = ['buildah', 'crun', 'mmdebstrap'].filter((name) => !isOnPath(name));
  if (process.getuid?.() !== 0) missing.push('root rights');
  if (missing.length > 0) throw new Error(`npm run test:image needs ${missing.join(', ')}.`);

  folder = makeFolder();
  chmodSync(folder, 0o755);
  makeBaseImages();
  buildah(
    ...['bud', '--format', 'docker', '--pull-never', '--isolation', 'chroot'],
    ...['--network', 'host', '--tag', IMAGE, PROJECT],
  );
  const inspected = JSON.parse(buildah('inspect', '--type', 'image', IMAGE)) as {
    Docker: { config: ImageConfig };
  };
  config = inspected.Docker.config;
  await startContainer();
}, 1_200_000);

afterAll(async () => {
  if (running?.exitCode === null) {
    await crun('kill', CONTAINER, 'SIGKILL');
    await once(running, 'close');
  }
  if (workingContainer !== undefined) buildah('rm', workingContainer);
  removeFolder(folder);
}, 60_000);

describe('the image', () => {
  it('is small, and runs as an ordinary user', () => {
    const [image] = JSON.parse(buildah('images', '--json', IMAGE)) as { size: string }[];

    expect(parseInt(image?.size ?? '', 10)).toBeLessThan(300);
    expect(config.User).toBe('10001:10001');
    expect(Object.keys(config.Volumes)).toEqual(['/data']);
  });

  it('stores plants, with its root file system read-only', async () => {
    const answer = await fetch(new URL('/plants', url), {
      method: 'POST',
      headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
      body: '{"id":9007199254740993,"name":"Fern"}',
    });

    expect([answer.status, await answer.text()]).toEqual([200, '{"name":"Fern"}']);
    const written = await crun('exec', CONTAINER, 'touch', '/opt/plant-store/x');
    expect(written.stderr).toContain('Read-only file system');
    expect((await fetch(new URL('/docs', url))).status).toBe(200);
  });

  it('has compiled code, which the program uses', async () => {
    const traced = await crun(
      ...['exec', '--user', config.User, '--env', 'NODE_DEBUG_NATIVE=COMPILE_CACHE', CONTAINER],
      ...['/usr/local/bin/node', '/opt/plant-store/plant-store.js', '--version'],
    );

    expect(traced.stdout + traced.stderr).toContain(
      'CommonJS /opt/plant-store/bundle.js was accepted',
    );
  });

  it('is healthy by its own check', async () => {
    const [kind, ...command] = config.Healthcheck.Test;

    expect(kind).toBe('CMD');
    const { code, stdout, stderr } = await crun('exec', CONTAINER, ...command);
    expect({ code, output: stdout + stderr }).toMatchObject({ code: 0 });
  });

  it('ends with 0 on SIGTERM, with all in the volume', async () => {
    const closed = once(running ?? process, 'close');

    await crun('kill', CONTAINER, 'SIGTERM');

    expect([await closed, output]).toEqual([[0, null], expect.any(String)]);
    expect(existsSync(join(folder, 'data/plants.db'))).toBe(true);
  });
});

function isOnPath(program: string): boolean {
  return (process.env.PATH ?? '').split(':').some((part) => existsSync(join(part, program)));
}

function buildah(...args: string[]): string {
  return execFileSync('buildah', args, {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    maxBuffer: 1e8,
  }).trim();
}

/** Debian, and Debian with Node.js and npm, under the names that the Dockerfile takes them by. */
function makeBaseImages(): void {
  const debian = join(folder, 'debian.tar');
  const excluded = ['doc', 'info', 'locale', 'man'].map((name) => `/usr/share/${name}/*`);
  execFileSync(
    'mmdebstrap',
    [
      ...['--quiet', '--variant=minbase', 'trixie'],
      ...excluded.map((path) => `--dpkgopt=path-exclude=${path}`),
      ...[debian, 'http://deb.debian.org/debian'],
    ],
    { stdio: 'inherit' },
  );
  commit('scratch', DEBIAN, (root) => {
    execFileSync('tar', ['-xf', debian, '-C', root, '--exclude=./dev/*']);
  });
  // The npm that runs this test: `npm root --global` depends on the Node.js that comes first in PATH.
  const npm = join(process.env.npm_execpath ?? '', '../..');
  const registry = execFileSync('npm', ['config', 'get', 'registry'], { encoding: 'utf8' });
  commit(DEBIAN, NODE, (root, container) => {
    buildah(
      ...['run', '--isolation', 'chroot', '--network', 'host', container, 'sh', '-ec'],
      'apt-get update -qq; apt-get install -qqy --no-install-recommends libatomic1',
    );
    const local = join(root, 'usr/local');
    mkdirSync(join(local, 'lib/node_modules'), { recursive: true });
    mkdirSync(join(local, 'etc'), { recursive: true });
    execFileSync('cp', [process.execPath, join(local, 'bin/node')]);
    execFileSync('cp', ['-RL', npm, join(local, 'lib/node_modules/npm')]);
    execFileSync('ln', ['-s', '../lib/node_modules/npm/bin/npm-cli.js', join(local, 'bin/npm')]);
    let settings = `registry=${registry}`;
    if (existsSync(CERTIFICATES)) {
      mkdirSync(join(root, 'etc/ssl/certs'), { recursive: true });
      writeFileSync(join(root, CERTIFICATES), readFileSync(CERTIFICATES));
      settings += `cafile=${CERTIFICATES}\n`;
    }
    writeFileSync(join(local, 'etc/npmrc'), settings);
  });
}

function commit(from: string, name: string, change: (root: string, container: string) => void) {
  const container = buildah('from', '--pull-never', from);
  try {
    change(buildah('mount', container), container);
    buildah('commit', '--quiet', container, name);
  } finally {
    buildah('rm', container);
  }
}

async function startContainer(): Promise<void> {
  workingContainer = buildah('from', '--pull-never', IMAGE);
  const root = buildah('mount', workingContainer);
  const data = join(folder, 'data');
  const [uid = NaN, gid = NaN] = config.User.split(':').map(Number);
  mkdirSync(data);
  chownSync(data, uid, gid);
  url = new URL(`http://127.0.0.1:${await freePort()}`);
  const spec = {
    ociVersion: '1.0.2',
    process: {
      user: { uid, gid },
      args: config.Entrypoint,
      env: [...config.Env, 'HOST=127.0.0.1', `PORT=${url.port}`, `AUTH_TOKENS=${TOKEN}`],
      cwd: config.WorkingDir,
      noNewPrivileges: true,
      capabilities: {},
    },
    root: { path: root, readonly: true },
    mounts: [
      { destination: '/proc', type: 'proc', source: 'proc' },
      { destination: '/dev', type: 'tmpfs', source: 'tmpfs' },
      { destination: '/data', type: 'bind', source: data, options: ['rbind', 'rw'] },
    ],
    linux: { namespaces: ['pid', 'ipc', 'uts', 'mount'].map((type) => ({ type })) },
  };
  writeFileSync(join(folder, 'config.json'), JSON.stringify(spec));
  running = spawn('unshare', underCrun('run', '--bundle', folder, CONTAINER));
  running.stdout?.on('data', (chunk) => (output += String(chunk)));
  running.stderr?.on('data', (chunk) => (output += String(chunk)));
  while (!output.includes('Listening on')) {
    if (running.exitCode !== null) throw new Error(output);
    await setTimeout(100);
  }
}

/** crun refuses a machine with both versions of control groups mounted, so it is shown one. */
function underCrun(...args: string[]): string[] {
  const script =
    'umount /sys/fs/cgroup/unified 2>/dev/null; exec crun --cgroup-manager=disabled "$@"';
  return ['--mount', 'sh', '-c', script, 'crun', ...args];
}

function crun(...args: string[]): Promise<Run> {
  return run('unshare', underCrun(...args));
}

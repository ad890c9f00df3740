import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { CORE_SCHEMA, load, loadAll, mergeTag } from 'js-yaml';
import type { StatefulSetSpec } from 'kubernetes-types/apps/v1';
import type { Container, EnvVar, ServiceSpec } from 'kubernetes-types/core/v1';
import { version } from '../../package.json';
import { readEnvironment } from '../../src/server/settings/environment';
import { TOKEN } from '../support/application';
import { plantStore } from '../support/plant-store';
import { PostgresServer } from '../support/postgres';
import { run } from '../support/run';
import { type ServiceProcess, useServiceHome } from '../support/service-process';
import { until } from '../support/until';

/**
 * Starts the program as the Kubernetes manifests and the Compose file would: in the environment of the
 * Dockerfile and theirs, asked by their probes and ended by their signal. The user that they name and a
 * read-only root file system are what `npm run test:image` has.
 */

const ROOT = join(__dirname, '../..');

interface Document {
  readonly apiVersion: string;
  readonly kind: string;
  readonly spec: unknown;
}

/** An object of Kubernetes, for reading what a manifest has: any member may be absent. */
type Whole<T> = T extends object ? { [Key in keyof T]-?: Whole<NonNullable<T[Key]>> } : T;

interface Compose {
  readonly services: Readonly<
    Record<string, { image?: string; environment?: NodeJS.ProcessEnv; stop_grace_period?: string }>
  >;
}

const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8');
const dockerfile = read('Dockerfile');
const page = read('docs/deploy/README.md');
/** The variables of the image. */
const image = parseEnv((/^ENV (.*)$/m.exec(dockerfile)?.[1] ?? '').replaceAll(' ', '\n'));
const [, imageUser, imageGroup] = /^USER (\d+):(\d+)$/m.exec(dockerfile) ?? [];

const documentsOf = (file: string) => loadAll(read(file)) as Document[];
const specOf = (file: string, ...kinds: string[]) =>
  documentsOf(file).find(({ kind }) => kinds.includes(kind))?.spec;

const MANIFESTS = ['docs/deploy/kubernetes.yaml', 'docs/deploy/kubernetes-postgresql.yaml'];

const home = useServiceHome();
let postgres: PostgresServer;
let nextId = 1;
beforeAll(async () => {
  postgres = await PostgresServer.start();
});
afterAll(() => postgres.remove());

/** Starts the program in an environment, but for what the tests cannot have: port and path. */
async function start(env: NodeJS.ProcessEnv): Promise<ServiceProcess> {
  mkdirSync(join(home.folder, 'data'));
  const settings: NodeJS.ProcessEnv = { ...image, ...env, HOST: '127.0.0.1', PORT: '0' };
  settings.DATABASE_URL = settings.DATABASE_URL?.replace('sqlite:/', `sqlite:${home.folder}/`);
  const service = await home.start(settings);
  await service.untilReady();
  expect(await create(service)).toBe(200);
  // The token of the tests is short.
  const lines = service.lines.filter(({ msg }) => !String(msg).startsWith('AUTH_TOKENS'));
  expect(Math.max(...lines.map(({ level }) => Number(level)))).toBeLessThan(40);
  return service;
}

const create = async (service: ServiceProcess) =>
  (await service.post(`{"id":${nextId++},"name":"Fern"}`)).status;

it('have the types that the Kubernetes API has, and no other fields', async () => {
  const types = join(ROOT, 'test/node_modules/kubernetes-types');
  const documents = MANIFESTS.flatMap(documentsOf);
  const program = join(home.folder, 'manifests.ts');
  const lines = documents.map((document) => {
    const module = document.apiVersion.replace('.k8s.io', '').replace(/^v1$/, 'core/v1');
    return `(${JSON.stringify(document)}) satisfies import('${types}/${module}').${document.kind};`;
  });
  writeFileSync(program, lines.join('\n'));

  const compiler = join(ROOT, 'node_modules/typescript/bin/tsc');
  const args = [compiler, '--noEmit', '--strict', program];
  const compiled = await run(process.execPath, args, { cwd: home.folder });

  expect(documents).toHaveLength(7);
  expect(compiled).toEqual({ code: 0, stdout: '', stderr: '' });
});

describe.each(MANIFESTS)('%s', (file) => {
  const isSqlite = file === 'docs/deploy/kubernetes.yaml';
  const { selector, ports } = specOf(file, 'Service') as Whole<ServiceSpec>;
  const workload = specOf(file, 'StatefulSet', 'Deployment') as Whole<StatefulSetSpec>;
  const { spec: pod, metadata } = workload.template;
  const [container] = pod.containers as [Whole<Container>];
  const variables: EnvVar[] = container.env;
  const environment = (): NodeJS.ProcessEnv => {
    const secrets: NodeJS.ProcessEnv = { tokens: TOKEN, 'database-url': postgres.url() };
    const valueOf = ({ value, valueFrom }: EnvVar) =>
      value ?? secrets[valueFrom?.secretKeyRef?.key ?? ''];
    return Object.fromEntries(variables.map((each) => [each.name, valueOf(each)]));
  };

  it('names what the image has', () => {
    const [port] = container.ports;
    const { labels } = metadata;

    expect(container.image).toBe(`registry.example/plant-store:${version}`);
    expect(new Set(page.match(/plant-store:\d\S*/g))).toEqual(new Set([`plant-store:${version}`]));
    for (const { name, key } of variables.flatMap((each) => each.valueFrom?.secretKeyRef ?? [])) {
      expect(page).toMatch(new RegExp(`create secret generic ${name} .*--from-literal=${key}=`));
    }
    expect(String(port?.containerPort)).toBe(image.PORT);
    expect(dockerfile).toContain(`\nEXPOSE ${image.PORT}\n`);
    expect(ports.map(({ targetPort }) => targetPort)).toEqual([port?.name]);
    expect([selector, workload.selector.matchLabels]).toEqual([labels, labels]);
    const { runAsUser, runAsGroup, fsGroup } = pod.securityContext;
    expect([runAsUser, runAsGroup].map(String)).toEqual([imageUser, imageGroup]);
    expect(fsGroup).toBe(isSqlite ? runAsGroup : undefined);
    const { volumeMounts: mounts } = container;
    expect({ mounts, claims: workload.volumeClaimTemplates }).toMatchObject({
      mounts: isSqlite ? [{ name: 'data', mountPath: '/data' }] : undefined,
      claims: isSqlite ? [{ metadata: { name: 'data' } }] : undefined,
    });
  });

  it('meets the restricted Pod Security Standard, and admits callers to its port', () => {
    const seccompProfile = { type: 'RuntimeDefault' };
    expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile });
    expect(container.securityContext).toMatchObject({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
    const ingress = [{ ports: [{ port: container.ports[0]?.name }] }];
    const policy = { podSelector: { matchLabels: selector }, ingress };
    expect(specOf(file, 'NetworkPolicy')).toMatchObject(policy);
  });

  it('leaves the program the time to end', () => {
    const { shutdownTimeout, shutdownGrace } = readEnvironment({ ...image, ...environment() });

    expect(pod.terminationGracePeriodSeconds * 1000).toBeGreaterThan(shutdownTimeout);
    const { periodSeconds, failureThreshold } = container.readinessProbe;
    expect(shutdownGrace).toBeGreaterThan(periodSeconds * failureThreshold * 1000);
  });

  it('starts a program that its probes find, and that serves on until it is not ready', async () => {
    const service = await start(environment());

    const probes = [container.startupProbe, container.livenessProbe, container.readinessProbe];
    const names = container.ports.map(({ name }) => name);
    for (const { httpGet } of probes) {
      expect(await service.statusOf(httpGet.path)).toBe(200);
      expect(names).toContain(httpGet.port);
    }
    const { port } = await service.url();
    const health = await plantStore(['health', '--ready'], { ...image, PORT: port });
    expect(health).toMatchObject({ code: 0 });

    service.kill('SIGTERM');
    const { path } = container.readinessProbe.httpGet;
    await until(async () => (await service.statusOf(path)) !== 200);
    expect(await service.statusOf(container.livenessProbe.httpGet.path)).toBe(200);
    expect(await create(service)).toBe(200);
    expect(await service.ended).toEqual({ code: 0, signal: null });
  });
});

describe('compose.yaml', () => {
  it.each(['plants', 'plants-a', 'plants-b'])(
    'starts the service %s, which ends in time',
    async (name) => {
      const text = read('compose.yaml')
        .replaceAll(/\$\{AUTH_TOKENS:\?.*\}$/gm, TOKEN)
        .replaceAll(/postgres:.*@database\/plants\S*$/gm, postgres.url());
      const compose = load(text, { schema: CORE_SCHEMA.withTags(mergeTag) }) as Compose;
      const { environment = {}, stop_grace_period = '', image: tag } = compose.services[name] ?? {};
      expect(tag).toBe(`plant-store:${version}`);

      const service = await start(environment);

      expect(await service.end()).toEqual({ code: 0, signal: null });
      expect(parseFloat(stop_grace_period) * 1000).toBeGreaterThan(
        readEnvironment({ ...image, ...environment }).shutdownTimeout,
      );
    },
  );
});

describe('plant-store.service', () => {
  it('starts what the page copies', async () => {
    const lines = page.match(/(?<=^sudo )(mkdir|cp) .*\/opt\/.*$/gm) ?? [];
    const [, command = ''] =
      /^ExecStart=(.*)$/m.exec(read('docs/deploy/plant-store.service')) ?? [];
    const script = [
      // Links stand for what is large: the packages, and Node's own release.
      ...lines.map((line) => line.replace(' node_modules ', ' ')),
      `ln -s ${ROOT}/node_modules /opt/plant-store/`,
      `ln -s ${process.execPath} /opt/plant-store/bin/node`,
      `NODE_ENV=production ${command}`,
    ].join(' && ');
    const inFolder = script.replaceAll(/ (?=\/(opt|etc)\/)/g, ` ${home.folder}`);

    const result = await run('sh', ['-c', inFolder], { cwd: ROOT });

    expect(lines).toHaveLength(2);
    const { stderr } = result;
    expect(stderr).toMatch(/^AUTH_TOKENS, .* must be set when NODE_ENV is production\n$/);
  });
});

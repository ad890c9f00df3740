/**
 * Starts the service as the Kubernetes manifests and the Compose file do: with their environment and that of the
 * Dockerfile, and stops it with their signal. `npm run test:image` tests the user and the read-only file system.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { parseEnv } from 'node:util';
import { CORE_SCHEMA, load, loadAll, mergeTag } from 'js-yaml';
import type { StatefulSetSpec } from 'kubernetes-types/apps/v1';
import type { Container, EnvVar, SecretVolumeSource, ServiceSpec } from 'kubernetes-types/core/v1';
import { version } from '../../package.json';
import { readEnvironment, type Settings } from '../../src/server/settings/environment';
import { TOKEN } from '../support/application';
import { PostgresServer } from '../support/postgres';
import { useServiceHome } from '../support/service-process';

const ROOT = join(__dirname, '../..');
const MANIFESTS = ['docs/deploy/kubernetes.yaml', 'docs/deploy/kubernetes-postgresql.yaml'];
const RESTORE_MANIFEST = 'docs/deploy/kubernetes-restore.yaml';
const COMPOSE_FILES = ['compose.yaml', 'docs/deploy/compose-postgresql.yaml'] as const;

interface Document {
  readonly kind: string;
  readonly spec: unknown;
}

interface Compose {
  readonly services: Record<string, { environment: NodeJS.ProcessEnv; stop_grace_period: string }>;
}

/** Makes all properties of a manifest required, so that a test can read any of them. */
type Whole<T> = T extends object ? { [Key in keyof T]-?: Whole<NonNullable<T[Key]>> } : T;

const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8');
const documentsOf = (file: string) => loadAll(read(file)) as Document[];
const parseCompose = (text: string) =>
  load(text, { schema: CORE_SCHEMA.withTags(mergeTag) }) as Compose;
const dockerfile = read('Dockerfile');
const page = read('docs/deploy/README.md');
const kubernetesPage = read('docs/deploy/kubernetes.md');
/** The environment variables of the image. */
const image = parseEnv((/^ENV (.*)$/m.exec(dockerfile)?.[1] ?? '').replaceAll(' ', '\n'));
const [user, group] = /^USER (.*)$/m.exec(dockerfile)?.[1]?.split(':').map(Number) ?? [];

/** A password with all kinds of Base64 characters, as openssl generates it. */
const POSTGRES_PASSWORD = 'p+a/s40=';

const home = useServiceHome();
let postgres: PostgresServer;
let nextId = 1;
beforeAll(async () => {
  // In production, the service requires a server that syncs.
  postgres = await PostgresServer.start({});
  await postgres.addAccessRule('host plants plants 127.0.0.1/32 scram-sha-256');
  await postgres.execute(`CREATE ROLE plants LOGIN PASSWORD '${POSTGRES_PASSWORD}'`);
  await postgres.execute('CREATE DATABASE plants OWNER plants');
});
afterAll(() => postgres.remove());

/** Runs the service in an environment, but with a host, port and path that the tests can use. */
async function expectToServe(environment: NodeJS.ProcessEnv): Promise<Settings> {
  mkdirSync(join(home.folder, 'data'));
  const env: NodeJS.ProcessEnv = { ...image, AUTH_TOKENS: '', ...environment };
  expect(env.HEALTH_PORT).toBe(image.HEALTH_PORT);
  Object.assign(env, { HOST: '127.0.0.1', PORT: '0', HEALTH_PORT: '0' });
  env.DATABASE_URL = env.DATABASE_URL?.replace('sqlite:/', `sqlite:${home.folder}/`);

  const service = await home.start(env);

  await service.waitUntilReady();
  expect((await service.post(`{"id":${nextId++},"name":"Fern"}`)).status).toBe(200);
  expect(await service.end()).toEqual({ code: 0, signal: null });
  expect(service.lines.filter(({ level }) => Number(level) >= 40)).toEqual([]);
  return readEnvironment(env);
}

it('the manifests, Compose files and pages contain the current version', () => {
  const texts = [...MANIFESTS, RESTORE_MANIFEST, ...COMPOSE_FILES].map(read).concat(page);

  for (const text of texts) expect(text).toContain(`plant-store:${version}\n`);
  expect(dockerfile).toContain(`org.opencontainers.image.version="${version}"`);
  expect(new Set(texts.join().match(/plant-store:\d\S*/g)).size).toBe(1);
});

describe.each(MANIFESTS)('%s', (file) => {
  const specs = Object.fromEntries(documentsOf(file).map(({ kind, spec }) => [kind, spec]));
  const workload = (specs.StatefulSet ?? specs.Deployment) as Whole<StatefulSetSpec>;
  const { metadata, spec: pod } = workload.template;
  const [container] = pod.containers as [Whole<Container>];
  const variables: EnvVar[] = container.env;
  const secretFiles = variables.filter(({ name }) => name.endsWith('_FILE'));

  it('refers to existing pods, ports, probes and secrets', () => {
    const { labels } = metadata;
    const { selector } = specs.Service as Whole<ServiceSpec>;
    const port = { name: 'http', containerPort: Number(image.PORT) };
    const healthPort = { name: 'health', containerPort: Number(image.HEALTH_PORT) };
    const probe = (path: string) => ({ httpGet: { path, port: healthPort.name } });

    expect(dockerfile).toContain(`\nEXPOSE ${image.PORT} ${image.HEALTH_PORT}\n`);
    expect([selector, workload.selector.matchLabels]).toEqual([labels, labels]);
    const ingress = [{ ports: [{ port: port.name }, { port: healthPort.name }] }];
    expect(specs).toMatchObject({
      Service: { ports: [{ targetPort: port.name }] },
      NetworkPolicy: { podSelector: { matchLabels: labels }, ingress },
    });
    expect(container).toMatchObject({
      ports: [port, healthPort],
      startupProbe: probe('/health/live'),
      livenessProbe: probe('/health/live'),
      readinessProbe: probe('/health/ready'),
    });
    const { secretName } = pod.volumes[0]?.secret as SecretVolumeSource;
    const [mount] = container.volumeMounts.filter((each) => each.name === 'secrets');
    expect(secretFiles).not.toEqual([]);
    for (const { value } of secretFiles) {
      expect(dirname(value ?? '')).toBe(mount?.mountPath);
      expect(kubernetesPage).toMatch(
        new RegExp(`create secret generic ${secretName} .*--from-file=${basename(value ?? '')}\\b`),
      );
    }
  });

  it('runs as the user of the image, and meets the restricted Pod Security Standard', () => {
    const [restore] = documentsOf(RESTORE_MANIFEST).map(({ spec }) => spec as typeof pod);
    expect(restore?.securityContext).toMatchObject(pod.securityContext);
    expect(restore?.containers[0]?.securityContext).toEqual(container.securityContext);
    expect(pod.securityContext).toMatchObject({
      runAsNonRoot: true,
      runAsUser: user,
      runAsGroup: group,
      seccompProfile: { type: 'RuntimeDefault' },
    });
    expect(container.securityContext).toMatchObject({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
  });

  it('keeps serving during SHUTDOWN_GRACE, and allows enough time to stop', async () => {
    const environment = Object.fromEntries(variables.map(({ name, value }) => [name, value]));
    for (const [name, content] of Object.entries({
      AUTH_TOKENS_FILE: TOKEN,
      DATABASE_URL_FILE: postgres.url(),
    })) {
      if (environment[name] === undefined) continue;
      environment[name] = join(home.folder, basename(environment[name]));
      writeFileSync(environment[name], content);
    }

    const { shutdownTimeout, shutdownGrace } = await expectToServe(environment);

    const { periodSeconds, failureThreshold } = container.readinessProbe;
    const isSingle = workload.replicas === 1;
    expect(shutdownGrace).toBeGreaterThan(isSingle ? 0 : periodSeconds * failureThreshold * 1000);
    expect(pod.terminationGracePeriodSeconds * 1000).toBeGreaterThan(shutdownTimeout);
  });
});

it('kubernetes.yaml and compose.yaml mount a volume at the data directory of the image', () => {
  const [{ spec }] = documentsOf('docs/deploy/kubernetes.yaml') as [Document];

  const volumeMounts = expect.arrayContaining([{ name: 'data', mountPath: '/data' }]) as unknown;
  const pod = { securityContext: { fsGroup: group }, containers: [{ volumeMounts }] };
  const volumeClaimTemplates = [{ metadata: { name: 'data' } }];
  expect(spec).toMatchObject({ template: { spec: pod }, volumeClaimTemplates });
  expect(dockerfile).toContain('\nVOLUME /data\n');
  expect(read('compose.yaml')).toContain("volumes: ['plants:/data']");
});

describe.each([
  [COMPOSE_FILES[0], ['plants']],
  [COMPOSE_FILES[1], ['plants-a', 'plants-b']],
] as const)('%s', (file, names) => {
  it.each(names)('starts the service %s, and allows enough time to stop', async (name) => {
    const secrets: NodeJS.ProcessEnv = { AUTH_TOKENS: TOKEN, POSTGRES_PASSWORD };
    const text = read(file)
      .replaceAll(/\$\{(\w+):\?.*\}$/gm, (_, secret: string) => secrets[secret] ?? '')
      .replaceAll('@database/', `@127.0.0.1:${postgres.port}/`);
    const { environment = {}, stop_grace_period = '' } = parseCompose(text).services[name] ?? {};

    const { shutdownTimeout } = await expectToServe(environment);

    expect(parseFloat(stop_grace_period) * 1000).toBeGreaterThan(shutdownTimeout);
  });
});

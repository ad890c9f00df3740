/** Mounts the module in applications with each of its options, valid and invalid. */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import {
  type DynamicModule,
  ForbiddenException,
  type INestApplication,
  type INestApplicationContext,
  Injectable,
  Scope,
  type Type,
} from '@nestjs/common';
import { NestFactory, REQUEST } from '@nestjs/core';
import { DocumentBuilder, SwaggerModule } from '@nestjs/swagger';
import { Test } from '@nestjs/testing';
import {
  type HostRequest,
  IdempotencyKeyReusedError,
  IdTakenError,
  InMemoryPlantsRepository,
  InvalidIdempotencyKeyError,
  InvalidPlantError,
  PlantsModule,
  type PlantsModuleOptions,
  PlantsService,
  type RequestNotes,
} from '../../src/plants';
import { errorBodies } from '../support/error-bodies';
import { makeFolder, removeFolder } from '../support/folder';
import {
  adapters,
  createGuard,
  createRecordingLogger,
  startHost,
  createModule,
} from '../support/orchard';
import { readPlants } from '../support/sqlite';

const TOKEN = 'token-of-the-host';
const FERN = '{"id":1,"name":"Fern"}';
const LARGE_ID = '{"id":9007199254740993,"name":" Fern "}';

let folder: string;
let file: string;
let app: INestApplication;
const started: INestApplicationContext[] = [];
beforeEach(() => {
  folder = makeFolder();
  file = join(folder, 'plants.db');
});
afterEach(async () => {
  for (const each of started.splice(0)) await each.close();
  removeFolder(folder);
});

const plantsService = () => app.get(PlantsService, { strict: false });

/** Creates the module with a token, and with a SQLite file unless the options specify another store. */
function withToken(options: Parameters<typeof PlantsModule.forRoot>[0] = {}): DynamicModule {
  // Never the default, which is in the working directory.
  const isStoreGiven = 'sqlite' in options || 'postgres' in options || 'repository' in options;
  const store = isStoreGiven ? {} : { sqlite: file };
  return PlantsModule.forRoot({ auth: { tokens: [TOKEN] }, ...store, ...options });
}

/** Starts a host, which is closed at the end of the test. */
async function start(...parameters: Parameters<typeof startHost>): Promise<URL> {
  const host = await startHost(...parameters);
  ({ app } = host);
  started.push(app);
  return host.url;
}

async function send(url: URL, path: string, init: RequestInit = {}) {
  const response = await fetch(new URL(path, url), init);
  const text = await response.text();
  return { status: response.status, type: response.headers.get('content-type'), text };
}

async function post(url: URL, body: string, headers = {}, path = '/api/v1/plants') {
  const { status, text } = await send(url, path, json(body, headers));
  return { status, body: JSON.parse(text) as unknown };
}

/** A guard of the host that accepts requests with a key. */
const KeyGuard = createGuard((context) => {
  const request = context.switchToHttp().getRequest<{ headers: Record<string, string> }>();
  if (request.headers['x-key'] !== 'good') throw new ForbiddenException('no key');
  return true;
});

/** Creates a module of the host that exports a provider. */
const exporting = (provider: Type): DynamicModule => ({
  ...createModule(provider),
  exports: [provider],
});

class AsyncOptions {
  create(): PlantsModuleOptions {
    return { sqlite: file, auth: { tokens: [TOKEN] } };
  }
}

const mountings = {
  forRoot: () => withToken(),
  'forRootAsync with a factory': () =>
    PlantsModule.forRootAsync({
      imports: [exporting(AsyncOptions)],
      inject: [AsyncOptions],
      useFactory: (options: AsyncOptions) => options.create(),
    }),
  'forRootAsync with a class': () => PlantsModule.forRootAsync({ useClass: AsyncOptions }),
  'forRootAsync with an existing class': () =>
    PlantsModule.forRootAsync({ imports: [exporting(AsyncOptions)], useExisting: AsyncOptions }),
};

describe.each(['Fastify', 'Express'] as const)('PlantsModule on %s', (adapter) => {
  it.each(Object.entries(mountings))(
    'creates a plant exactly when it is mounted by %s, below the prefix and version of the host',
    async (_how, mount) => {
      const url = await start(adapter, [mount()], { rawBody: true });

      expect(await post(url, LARGE_ID)).toEqual({ status: 200, body: { name: ' Fern ' } });
      expect(readPlants(file)).toEqual([{ id: 9_007_199_254_740_993n, name: ' Fern ' }]);
    },
  );

  it('works in a testing module, which gets its adapter later and can override the guard', async () => {
    const guarded = PlantsModule.forRoot({ sqlite: file, guard: KeyGuard });
    const testing = Test.createTestingModule({ imports: [guarded] }).overrideGuard(KeyGuard);
    const compiled = await testing.useValue({ canActivate: () => true }).compile();
    app = compiled.createNestApplication(adapters[adapter](), { logger: false, rawBody: true });
    started.push(app);
    await app.listen(0, '127.0.0.1');

    const response = await post(new URL(await app.getUrl()), LARGE_ID, {}, '/plants');
    expect(response).toMatchObject({ status: 200 });
  });

  it('shares one service and store between modules of the host that import the same constant', async () => {
    const plants = withToken();
    const useFactory = (service: PlantsService) => service;
    const feature = createModule({ provide: 'feature', inject: [PlantsService], useFactory });

    await start(adapter, [plants, { ...feature, imports: [plants] }]);

    expect(app.get('feature', { strict: false })).toBe(plantsService());
  });

  it('does not change the other routes of the host', async () => {
    const answersOf = async (url: URL) => [
      await send(url, '/api/v1/trees', json('{"id":9007199254740993,"name":" Oak "}')),
      await send(url, '/api/v1/trees', json(`{"name":"${'x'.repeat(3 * 2 ** 20)}"}`)),
      await send(url, '/api/v1/trees', json('{')),
      await send(url, '/api/v1/trees/broken'),
    ];
    const countListeners = () => process.eventNames().map((name) => process.listenerCount(name));
    const alone = await startHost(adapter, []);
    const expected = await answersOf(alone.url);
    await alone.app.close();
    const listeners = countListeners();

    const url = await start(adapter, [withToken()]);

    expect(await answersOf(url)).toEqual(expected);
    expect(expected.map(({ status }) => status)).toEqual([201, 201, 400, 500]);
    expect(countListeners()).toEqual(listeners);
  });

  it('does not affect other routes of the host while the store fails, and logs the failure once', async () => {
    const logger = createRecordingLogger();
    const postgres = 'postgres://plants@127.0.0.1:1/plants';
    const url = await start(adapter, [withToken({ postgres })], { logger });

    const rejected = { status: 503, body: errorBodies.unavailable };
    expect([await post(url, FERN), await post(url, FERN)]).toEqual([rejected, rejected]);
    expect(await send(url, '/api/v1/trees', json('{}'))).toMatchObject({ status: 201 });
    const lines = logger.error.mock.calls.map(String);
    expect(lines.filter((line) => line.includes('ECONNREFUSED'))).toHaveLength(1);
  });

  it('closes its store when the host closes, after all accepted plants are stored', async () => {
    await start(adapter, [withToken()]);
    const plants = plantsService();
    const ids = Array.from({ length: 20 }, (_, at) => BigInt(at));
    const creations = ids.map((id) => plants.create({ id, name: 'Fern' }));

    await app.close();

    expect(await Promise.all(creations)).toHaveLength(20);
    expect(existsSync(`${file}-wal`)).toBe(false);
    expect(readPlants(file)).toHaveLength(20);
  });

  it('adds itself to the OpenAPI document of the host, next to schemas with the same name', async () => {
    await start(adapter, [withToken()]);

    const { paths, components } = SwaggerModule.createDocument(app, new DocumentBuilder().build());

    const { security, responses = {} } = paths['/api/v1/plants']?.post ?? {};
    expect(security).toEqual([{ bearerAuth: [] }]);
    const statuses = ['200', '400', '401', '403', '503', '504', 'default'];
    expect(Object.keys(responses).sort()).toEqual(statuses);
    expect(components?.schemas).toMatchObject({
      Plant: { properties: { rows: { type: 'number' } } },
      'PlantStore.NewPlant': { properties: { name: { type: 'string' } } },
      'PlantStore.Error': { properties: { error: { type: 'integer' } } },
    });
  });

  it.each([false as const, KeyGuard])(
    'declares no responses of bearer tokens in the OpenAPI document with guard: %p',
    async (guard) => {
      await start(adapter, [PlantsModule.forRoot({ sqlite: file, guard })]);

      const { paths } = SwaggerModule.createDocument(app, new DocumentBuilder().build());

      const { security, responses = {}, operationId } = paths['/api/v1/plants']?.post ?? {};
      expect(security).toBeUndefined();
      expect(Object.keys(responses)).toEqual(['200', '400', '503', '504', 'default']);
      expect(JSON.stringify(responses)).not.toContain('WWW-Authenticate');
      expect(operationId).toBe('PlantsController_create_v1');
    },
  );

  it("separates callers by the name that the host's guard sets, over HTTP and in-process", async () => {
    const guard = createGuard((context) => {
      const request = context.switchToHttp().getRequest<HostRequest>();
      const { headers } = 'raw' in request ? request.raw : request;
      const name = headers['x-caller'];
      const notes: RequestNotes = typeof name === 'string' ? { caller: { name } } : {};
      request.plantStore = notes;
      return true;
    });
    const url = await start(adapter, [PlantsModule.forRoot({ sqlite: file, guard })]);
    const statusOf = async (caller: object, id: number) => {
      const headers = { 'idempotency-key': 'abc', ...caller };
      return (await post(url, `{"id":${id},"name":"Fern"}`, headers)).status;
    };
    const ada = { 'x-caller': 'ada' };
    const bob = { 'x-caller': 'bob' };
    const nobody = {};

    for (const caller of [ada, ada]) expect(await statusOf(caller, 1)).toBe(200);
    for (const caller of [nobody, nobody]) expect(await statusOf(caller, 2)).toBe(200);
    expect([await statusOf(bob, 1), await statusOf(ada, 2)]).toEqual([400, 400]);

    const fern = { id: 1n, name: 'Fern' };
    const options = { idempotencyKey: 'abc', caller: { name: 'ada' } };
    expect(await plantsService().create(fern, options)).toMatchObject(fern);
    const reuse = plantsService().create({ ...fern, name: 'Moss' }, options);
    await expect(reuse).rejects.toThrow(IdempotencyKeyReusedError);
  });
});

describe('PlantsModule with missing or invalid options', () => {
  const folderBefore = process.cwd();
  beforeEach(() => {
    process.chdir(folder);
  });
  afterEach(() => {
    jest.restoreAllMocks();
    process.chdir(folderBefore);
  });

  it('prints a temporary token to standard error, accepts it, and logs where it stores plants', async () => {
    const logger = createRecordingLogger();
    const standardError = jest.spyOn(process.stderr, 'write').mockReturnValue(true);
    const url = await start('Fastify', [PlantsModule.forRoot()], { logger });
    const printed = standardError.mock.calls.map(([text]) => String(text)).join('');
    const [authorization = ''] = /Bearer [\w-]+/.exec(printed) ?? [];

    expect(await post(url, FERN)).toMatchObject({ status: 401 });
    expect(await post(url, FERN, { authorization })).toMatchObject({ status: 200 });
    const logged = JSON.stringify(Object.values(logger).map(({ mock }) => mock.calls as unknown[]));
    const stored = join(process.cwd(), 'data/plants.db');
    expect(readPlants(stored)).toHaveLength(1);
    expect(logged).toContain(`Storing plants in ${stored}`);
    expect(logged).not.toContain(authorization.slice('Bearer '.length));
  });

  const mount = (options: unknown) => PlantsModule.forRoot(options as object);
  const byFactory = (options: unknown) =>
    PlantsModule.forRootAsync({ useFactory: () => options as object });
  const mountAsync = (options: unknown) => PlantsModule.forRootAsync(options as object);

  it.each([
    ['production', 'auth or guard must be set in production', { sqlite: 'x.db' }],
    // `docker --env-file` keeps quotation marks.
    ['"production"', 'auth or guard must be set in production', { sqlite: 'x.db' }],
    ['production', 'repository must be set in production', { auth: { tokens: [TOKEN] } }],
  ])('does not start with NODE_ENV=%s: %s', async (mode, message, options) => {
    jest.replaceProperty(process.env, 'NODE_ENV', mode);

    await expect(startHost('Fastify', [byFactory(options)])).rejects.toThrow(message);
    expect(readdirSync(folder)).toEqual([]);
  });

  class RequestOptions extends AsyncOptions {}
  Injectable({ scope: Scope.REQUEST })(RequestOptions);

  it.each<[string, object]>([
    ['useFactory', { inject: [REQUEST], useFactory: () => ({ sqlite: 'x.db', auth }) }],
    ['useExisting', { useExisting: RequestOptions }],
  ])('does not start with request-scoped options by %s', async (_how, options) => {
    const plants = PlantsModule.forRootAsync({ imports: [exporting(RequestOptions)], ...options });

    const starting = startHost('Express', [plants]);

    await expect(starting).rejects.toThrow(
      'The options must not come from a request-scoped provider',
    );
    expect(readdirSync(folder)).toEqual([]);
  });

  const issuer = { issuer: 'https://id.example' };
  const auth = { tokens: [TOKEN] };
  const imports = [exporting(InMemoryPlantsRepository)];
  const ownStore = { imports, repository: InMemoryPlantsRepository };
  const useFactory = () => ({});
  it.each<[string, (options: unknown) => DynamicModule, ...unknown[]]>([
    // An unset variable of the environment would admit "Bearer undefined".
    [
      'auth.tokens must be set or left out: an item of auth.tokens is undefined or null.',
      byFactory,
      { auth: { tokens: [undefined], tokensFile: 'tokens.txt' } },
      { auth: { tokens: [null], tokensFile: 'tokens.txt' } },
      { auth: { tokens: [TOKEN, undefined] } },
      { auth: { tokens: Array(1) } },
    ],
    [
      'auth.tokens must be set or left out: auth.tokens is undefined or null.',
      byFactory,
      { auth: { tokens: undefined, tokensFile: 'tokens.txt' } },
    ],
    [
      'auth.tokens is invalid: token 1 must',
      byFactory,
      { auth: { tokens: [''], tokensFile: 'tokens.txt' } },
      { auth: { tokens: [' '] } },
    ],
    ['auth.tokens is invalid: ', byFactory, { auth: { tokens: [7] } }, { auth: { tokens: TOKEN } }],
    ['bodyLimit must be set or left out', mount, { bodyLimit: undefined }, { bodyLimit: null }],
    [
      'bodyLimit must be a positive integer.',
      mount,
      { bodyLimit: '1mb' },
      { bodyLimit: 0 },
      { bodyLimit: NaN },
      { bodyLimit: -1 },
      { bodyLimit: 1.5 },
      { bodyLimit: Infinity },
    ],
    ['auth must be set or left out', byFactory, { auth: undefined }, { auth: null }],
    ['The options must be an object.', byFactory, undefined, null, 'x'],
    ['auth must have tokens, tokensFile or issuer.', mount, { auth: {} }],
    ['auth.issuer must be set or left out', mount, { auth: { issuer: [undefined] } }],
    ['auth.audience must be set or left out', mount, { auth: { audience: undefined } }],
    ['auth.scope must be set or left out', mount, { auth: { scope: undefined } }],
    ['auth.metricsScope is not a known option.', mount, { auth: { metricsScope: 'x' } }],
    ['postgres must be set or left out', byFactory, { postgres: undefined }, { postgres: null }],
    ['postgres.ssl must be set or left out', byFactory, { postgres: { ssl: undefined } }],
    ['postgres.port must be set or left out', byFactory, { postgres: { port: null } }],
    ['postgres.hots is not a known option.', byFactory, { postgres: { hots: 'x' } }],
    ['useFactory must be set: forRootAsync has no defaults.', mountAsync, {}],
    ['sqlite must be set or left out', mount, { sqlite: undefined }, { sqlite: null }],
    ['sqlite must name a file', mount, { sqlite: '', auth }],
    ['guard must be set or left out', mount, { guard: undefined }],
    ['guard must be set or left out', mountAsync, { useFactory, guard: undefined }],
    ['repository must be set or left out', mount, { repository: undefined }],
    ['imports must be set or left out', mount, { imports: undefined }, { imports: [undefined] }],
    ['atuh is not a known option.', byFactory, { atuh: auth }],
    ['constructor is not a known option.', byFactory, JSON.parse('{"constructor":1}')],
    ['guard is not a known option.', byFactory, { guard: KeyGuard }],
    ['sqlite is not a known option.', mountAsync, { useFactory, sqlite: 'x.db' }],
    ['auth.tokens is invalid: token 2 must', mount, { auth: { tokens: ['good', 'n ö'] } }],
    ['auth.issuer requires auth.audience', mount, { auth: issuer }],
    ['sqlite and postgres exclude each other', mount, { sqlite: 'x.db', postgres: 'x' }],
    ['sqlite and repository exclude each other', mount, { sqlite: 'x.db', ...ownStore }],
    ['auth and guard exclude each other', mount, { guard: KeyGuard, auth }],
    ['auth and guard exclude each other', mount, { guard: false, auth }],
  ])('does not start when %s', async (message, by, ...values) => {
    for (const options of values) {
      const starting = async () => startHost('Fastify', [by(options)]);
      await expect(starting()).rejects.toThrow(message);
    }
    expect(readdirSync(folder)).toEqual([]);
  });
});

@Injectable()
class HostRepository extends InMemoryPlantsRepository {
  readonly onApplicationShutdown = jest.fn();
}

it('PlantsModule stores plants in a repository of the host, and leaves closing it to the host', async () => {
  const ownStore = { imports: [exporting(HostRepository)], repository: HostRepository };
  const url = await start('Fastify', [withToken(ownStore)]);

  expect(await post(url, FERN)).toMatchObject({ status: 200 });
  expect(await post(url, FERN)).toEqual({ status: 400, body: errorBodies.idTaken });
  const repository = app.get(HostRepository, { strict: false });
  expect(await repository.page(undefined, 9)).toHaveLength(1);
  await app.close();
  expect(repository.onApplicationShutdown).toHaveBeenCalledTimes(1);
});

describe('PlantsService in an application without HTTP', () => {
  let plants: PlantsService;
  beforeEach(async () => {
    const context = await NestFactory.createApplicationContext(withToken(), { logger: false });
    started.push(context);
    plants = context.get(PlantsService);
  });

  it('creates and finds the plant as passed, even if the object changes afterwards', async () => {
    const plant = { id: 2n ** 63n - 1n, name: 'Fern', tag: 'shade' };
    const passed = { ...plant };
    const creation = plants.create(passed);
    Object.assign(passed, { id: 2n ** 64n + 5n, name: 'Moss' });

    expect(await creation).toEqual({ ...plant, isReplay: false });
    expect(await plants.find(plant.id)).toEqual(plant);
    for (const id of [1n, 2n ** 63n, -(2n ** 70n)]) expect(await plants.find(id)).toBeUndefined();
  });

  it('throws the errors in the catalogue', async () => {
    const fern = { id: 1n, name: 'Fern' };
    await plants.create(fern);

    for (const [plant, options, error] of [
      [{ ...fern, name: 'Moss' }, {}, IdTakenError],
      [{ ...fern, id: 2n ** 63n }, {}, InvalidPlantError],
      [{ ...fern, name: '\ud800' }, {}, InvalidPlantError],
      [fern, { idempotencyKey: 'a b' }, InvalidIdempotencyKeyError],
    ] as const) {
      await expect(plants.create(plant, options)).rejects.toThrow(error);
    }
  });
});

function json(body: string, headers = {}): RequestInit {
  const defaults = { 'content-type': 'application/json', authorization: `Bearer ${TOKEN}` };
  return { method: 'POST', body, headers: { ...defaults, ...headers } };
}

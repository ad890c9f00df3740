/** The rows of the table in docs/embedding.md, on both platforms. `test/package/hosts` tests Nest 11. */
import type { Server } from 'node:http';
import compressResponses from '@fastify/compress';
import {
  type CanActivate,
  ClassSerializerInterceptor,
  type ExceptionFilter,
  ForbiddenException,
  HttpException,
  type INestApplication,
  type NestInterceptor,
  type NestMiddleware,
  type PipeTransform,
  type Provider,
  UnauthorizedException,
  ValidationPipe,
} from '@nestjs/common';
import { APP_FILTER, APP_GUARD, APP_INTERCEPTOR, APP_PIPE, Reflector } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import compression from 'compression';
import { map, throwError } from 'rxjs';
import serverless from 'serverless-http';
import {
  InMemoryPlantsRepository,
  OutcomeUnknownError,
  PlantsModule,
  PlantsRepository,
  UnavailableError,
} from '../../src/plants';
import { errorBodies } from '../support/error-bodies';
import { type adapters, createModule, createRecordingLogger, startHost } from '../support/orchard';

type Body = string | Buffer | ReadableStream;

const FERN = '{"id":1,"name":"Fern"}';
const LARGE_ID = '{"id":9007199254740993,"name":"Fern"}';
const AUTHORIZED = { authorization: 'Bearer host-token' };

const started: INestApplication[] = [];
afterEach(async () => {
  jest.restoreAllMocks();
  for (const each of started.splice(0)) await each.close();
});

/** Mounts the module with a store in memory, on a host with these global providers. */
async function start(
  adapter: keyof typeof adapters,
  providers: Provider[] = [],
  options: Parameters<typeof startHost>[2] = {},
  configure?: Parameters<typeof startHost>[3],
): Promise<URL> {
  const plants = PlantsModule.forRoot({
    imports: [{ ...createModule(InMemoryPlantsRepository), exports: [InMemoryPlantsRepository] }],
    repository: InMemoryPlantsRepository,
    auth: { tokens: ['host-token'] },
    bodyLimit: 5000,
  });
  const imports = [plants, createModule(...providers)];
  const { app, url } = await startHost(adapter, imports, options, configure);
  started.push(app);
  return url;
}

async function send(url: URL, path: string, body: Body = FERN, headers = {}) {
  const all = { 'content-type': 'application/json', ...AUTHORIZED, ...headers };
  const init = { method: 'POST', body, headers: all, duplex: 'half' as const };
  const response = await fetch(new URL(path, url), init);
  const others = Object.fromEntries(response.headers);
  return { status: response.status, headers: { ...others, date: '' }, body: await response.json() };
}

const post = (url: URL, body?: Body, headers = {}) => send(url, '/api/v1/plants', body, headers);

const rejectedWith = (body: { readonly error: number }) => ({
  status: Math.floor(body.error / 100),
  body,
});

const ids = async () => {
  const repository = started[0]?.get<PlantsRepository>(PlantsRepository, { strict: false });
  return (await repository?.page(undefined, 9))?.map(({ id }) => id);
};

/** The error that the host throws next, and where. */
let fault: { place: string; error: unknown } | undefined;
const run = (place: string): true => {
  if (fault?.place === place) throw fault.error;
  return true;
};
const guard: CanActivate = { canActivate: () => run('guard') };
const interceptor: NestInterceptor = {
  intercept(_context, next) {
    run('interceptor');
    return fault?.place === 'response' ? throwError(() => fault?.error) : next.handle();
  },
};
const pipe: PipeTransform = {
  transform(value: unknown) {
    run('pipe');
    return value;
  },
};
const hostProviders = [
  { provide: APP_GUARD, useValue: guard },
  { provide: APP_INTERCEPTOR, useValue: interceptor },
  { provide: APP_PIPE, useValue: pipe },
];
const middleware: NestMiddleware['use'] = (_request, _response, next: () => void) => {
  run('middleware');
  next();
};

const filtered: unknown[] = [];
const filter: ExceptionFilter = {
  catch(exception, host) {
    filtered.push(exception);
    const adapter = started.at(-1)?.getHttpAdapter();
    adapter?.reply(host.switchToHttp().getResponse(), { orchard: true }, 418);
  },
};

describe.each<keyof typeof adapters>(['Fastify', 'Express'])('a host on %s', (adapter) => {
  beforeEach(() => {
    fault = undefined;
    filtered.length = 0;
  });

  const errors = [
    new ForbiddenException({ code: 'SUBSCRIPTION_EXPIRED', message: 'Your plan expired' }),
    new UnauthorizedException('Session revoked'),
    new HttpException('Too many plants today', 429),
    Object.assign(new Error('of http-errors'), { statusCode: 402 }),
    new Error('secret'),
  ];
  const places = ['middleware', 'guard', 'interceptor', 'pipe', 'response'];

  it.each(places)('responds to errors of its %s as at its other routes', async (place) => {
    for (const filters of [[], [{ provide: APP_FILTER, useValue: filter }]]) {
      const providers = [...hostProviders, ...filters];
      const url = await start(adapter, providers, {}, (app) => app.use(middleware));
      for (const error of errors) {
        fault = { place, error };

        const response = await post(url);

        expect(response).toEqual(await send(url, '/api/v1/trees'));
        expect(response).toMatchObject(filters[0] ? { status: 418, body: { orchard: true } } : {});
      }
    }
    expect(filtered).toEqual(errors.flatMap((error) => [error, error]));
  });

  it('gets the Error body for every rejection by the module, in spite of its own filter', async () => {
    const url = await start(adapter, [{ provide: APP_FILTER, useValue: filter }]);

    const insert = jest.spyOn(InMemoryPlantsRepository.prototype, 'insert');
    insert.mockRejectedValueOnce(new OutcomeUnknownError());
    insert.mockRejectedValueOnce(new UnavailableError());
    const missing = rejectedWith(errorBodies.missingCredentials);
    const unavailable = rejectedWith(errorBodies.unavailable);
    expect([
      await post(url, '{"id":1}'),
      await post(url, FERN, { 'content-type': 'text/plain' }),
      await post(url, FERN, { authorization: '' }),
      await post(url),
      await post(url),
    ]).toMatchObject([
      rejectedWith(errorBodies.nameMissing),
      rejectedWith(errorBodies.mediaType),
      { ...missing, headers: { 'www-authenticate': 'Bearer realm="plants"' } },
      rejectedWith(errorBodies.outcomeUnknown),
      { ...unavailable, headers: { 'retry-after': '1' } },
    ]);
    expect(filtered).toEqual([]);
  });

  const chunked = () => new Blob([FERN.padEnd(5001)]).stream();
  const tooLarge = { ...errorBodies.tooLarge, message: expect.stringContaining('5000') as string };

  it('parses bodies itself without rawBody, so ids above 2^53 are rejected', async () => {
    const url = await start(adapter);

    expect(await post(url, LARGE_ID)).toMatchObject(rejectedWith(errorBodies.idRounded));
    expect(await post(url, FERN)).toMatchObject({ status: 200, body: { name: 'Fern' } });
    expect(await post(url, FERN.padEnd(5001))).toMatchObject(rejectedWith(tooLarge));
    expect(await post(url, '{')).toEqual(await send(url, '/api/v1/trees', '{'));
  });

  it('keeps every id with rawBody: true', async () => {
    const url = await start(adapter, [], { rawBody: true });

    expect(await post(url, LARGE_ID)).toMatchObject({ status: 200 });
    expect(await post(url, '{')).toEqual(await send(url, '/api/v1/trees', '{'));
    expect(await post(url, Buffer.from([0x7b, 0xff, 0x7d, 0x20]))).toMatchObject({ status: 400 });
    expect(await post(url, chunked())).toMatchObject(rejectedWith(tooLarge));
    expect(await ids()).toEqual([9_007_199_254_740_993n]);
  });

  const isAboutRounding = (line: string) => line.includes('rounds ids');

  it('warns once, when a body arrives parsed, that ids may be rejected', async () => {
    const logger = createRecordingLogger();
    const url = await start(adapter, [], { logger });
    const warnings = () => logger.warn.mock.calls.map(String).filter(isAboutRounding);

    expect(warnings()).toEqual([]);
    for (const body of [FERN, LARGE_ID]) await post(url, body);

    expect(warnings()).toEqual([
      'A parser of the application rounds ids above 2^53, which are rejected. To accept every id, create the application with rawBody: true.,PlantStore',
    ]);
  });

  it('does not warn if it keeps the bytes of bodies', async () => {
    const logger = createRecordingLogger();
    const url = await start(adapter, [], { logger, rawBody: true });

    for (const body of [FERN, LARGE_ID, '', '[]']) await post(url, body);

    expect(logger.warn.mock.calls.map(String).filter(isAboutRounding)).toEqual([]);
  });

  /** Ways in which a host keeps a body as a string. */
  const textParsers = {
    'its JSON parser sets rawBody': (app: INestApplication) => {
      if (adapter === 'Fastify') {
        // As `fastify-raw-body` does by default.
        const instance = (app as NestFastifyApplication).getHttpAdapter().getInstance();
        const options = { parseAs: 'string', bodyLimit: 9999 } as const;
        instance.addContentTypeParser('application/json', options, (request, text, done) => {
          Object.assign(request, { rawBody: text });
          done(null, {});
        });
      } else {
        const verify = (request: object, _response: object, bytes: Buffer) => {
          Object.assign(request, { rawBody: bytes.toString() });
        };
        const options = { strict: false, verify };
        (app as NestExpressApplication).useBodyParser('json', options);
      }
    },
    'its text parser sets body': (app: INestApplication) => {
      if (adapter === 'Fastify') {
        const instance = (app as NestFastifyApplication).getHttpAdapter().getInstance();
        const options = { parseAs: 'string', bodyLimit: 9999 } as const;
        instance.addContentTypeParser('application/json', options, (_request, text, done) => {
          done(null, text);
        });
      } else {
        (app as NestExpressApplication).useBodyParser('text', { type: 'application/json' });
      }
    },
  };

  it.each(Object.entries(textParsers))(
    'may keep bodies as strings: %s',
    async (_how, configure) => {
      const url = await start(adapter, [], { bodyParser: false }, configure);

      expect(await post(url, LARGE_ID)).toMatchObject({ status: 200, body: { name: 'Fern' } });
      const others = '{"id":2,"name":"🌿\\u0000"}';
      expect(await post(url, others)).toMatchObject(rejectedWith(errorBodies.nameNotExact));
      expect(await post(url, new Blob([FERN]).stream())).toMatchObject({ status: 200 });
      expect(await post(url, FERN.padEnd(5001))).toMatchObject(rejectedWith(tooLarge));
      expect(await post(url, chunked())).toMatchObject(rejectedWith(tooLarge));
      expect(await post(url, JSON.stringify(FERN))).toMatchObject(
        rejectedWith(errorBodies.notAnObject),
      );
      // A decoder has replaced the byte.
      const notUtf8 = Buffer.from(FERN.replace('Fern', '\xff'), 'latin1');
      expect(await post(url, notUtf8)).toMatchObject({ status: 400 });
      expect(await post(url, `\ufeff${FERN}`)).toMatchObject({ status: 400 });
      expect(await ids()).toEqual([1n, 9_007_199_254_740_993n]);
    },
  );

  it('rejects a JSON string that contains a plant, also if its parser has parsed it', async () => {
    for (const rawBody of [true, false]) {
      const configure = (app: INestApplication) => {
        if (adapter === 'Fastify') return;
        (app as NestExpressApplication).useBodyParser('json', { strict: false });
      };
      const options = { rawBody, bodyParser: adapter === 'Fastify' };
      const url = await start(adapter, [], options, configure);

      const response = await post(url, JSON.stringify(FERN));

      expect(response).toMatchObject(rejectedWith(errorBodies.notAnObject));
    }
  });

  it('logs and gets 500 if nothing has read the body', async () => {
    const configure = (app: INestApplication) => {
      if (adapter !== 'Fastify') return;
      // Express reads no body with `bodyParser: false`. Fastify has parsers of its own.
      const instance = (app as NestFastifyApplication).getHttpAdapter().getInstance();
      instance.addHttpMethod('POST', { hasBody: false, overrideExisting: true });
    };
    const logger = createRecordingLogger();
    const url = await start(adapter, [], { bodyParser: false, logger }, configure);

    for (const body of [FERN, chunked()]) {
      expect(await post(url, body)).toMatchObject({ status: 500 });
    }
    expect(logger.error.mock.calls.map(String).join()).toContain('No parser of the application');
    expect(await post(url, '')).toMatchObject(rejectedWith(errorBodies.empty));
  });

  it('may set rawBody or body in a guard, with bodyParser: false', async () => {
    const bodyOf: Record<string, object> = {
      raw: { rawBody: Buffer.from(LARGE_ID) },
      parsed: { body: JSON.parse(FERN) as unknown },
    };
    const setBody: CanActivate = {
      canActivate: (context) => {
        const request = context.switchToHttp().getRequest<{ headers: Record<string, string> }>();
        Object.assign(request, bodyOf[request.headers['x-set'] ?? '']);
        return true;
      },
    };
    const providers = [{ provide: APP_GUARD, useValue: setBody }];
    const url = await start(adapter, providers, { bodyParser: false });

    for (const kind of ['raw', 'parsed']) {
      expect(await post(url, FERN, { 'x-set': kind })).toMatchObject({ status: 200 });
    }
    expect(await ids()).toEqual([1n, 9_007_199_254_740_993n]);
  });

  it('may use strict global pipes, interceptors for responses, prefixes, versions and compression', async () => {
    const strict = { transform: true, whitelist: true, forbidNonWhitelisted: true };
    const wrap: NestInterceptor = {
      intercept: (_context, next) => next.handle().pipe(map((data: unknown) => ({ data }))),
    };
    const validation = new ValidationPipe({ ...strict, validateCustomDecorators: true });
    const providers = [
      { provide: APP_INTERCEPTOR, useClass: ClassSerializerInterceptor },
      { provide: APP_INTERCEPTOR, useValue: wrap },
      { provide: APP_PIPE, useValue: new ValidationPipe(strict) },
      { provide: APP_PIPE, useValue: validation },
    ];
    const compress = (app: INestApplication) =>
      adapter === 'Fastify'
        ? (app as NestFastifyApplication).register(compressResponses)
        : app.use(compression());
    const url = await start(adapter, providers, { rawBody: true }, compress);
    const name = 'Fern'.repeat(1000);

    const body = `{"id":9007199254740993,"name":"${name}","other":1}`;
    const response = await post(url, body, { 'accept-encoding': 'gzip' });

    expect(response).toMatchObject({ status: 200, headers: { 'content-encoding': 'gzip' } });
    expect(response.body).toEqual({ data: { name } });
    expect(await post(url, '{"id":1}')).toMatchObject(rejectedWith(errorBodies.nameMissing));
    expect(await ids()).toEqual([9_007_199_254_740_993n]);
  });

  it.each([
    ['excludeAll', { strategy: 'excludeAll' as const }],
    ['excludeExtraneousValues', { excludeExtraneousValues: true }],
    ['exposeAll', {}],
  ])('may serialize responses with ClassSerializerInterceptor, with %s', async (_how, options) => {
    const inject = [Reflector];
    const useFactory = (reflector: Reflector) => new ClassSerializerInterceptor(reflector, options);
    const url = await start(adapter, [{ provide: APP_INTERCEPTOR, inject, useFactory }]);

    const tagged = { name: 'Fern', tag: 'shade' };
    const responses = [
      await post(url, JSON.stringify({ id: 1, ...tagged })),
      await post(url, JSON.stringify({ id: 2, name: 'Moss' })),
    ];

    expect(responses.map(({ body }) => body)).toEqual([tagged, { name: 'Moss' }]);
  });

  it('works behind serverless-http, which fills no rawHeaders', async () => {
    await start(adapter, [], { rawBody: true });
    const handle = serverless(started[0]?.getHttpServer() as Server);
    const headers = { ...AUTHORIZED, 'content-type': 'application/json' };
    const invoke = (body: string, others = {}) =>
      handle(
        { httpMethod: 'POST', path: '/api/v1/plants', headers: { ...headers, ...others }, body },
        {},
      );

    expect(await invoke(LARGE_ID)).toMatchObject({ statusCode: 200, body: '{"name":"Fern"}' });
    expect(await invoke(FERN, { authorization: 'Bearer x' })).toMatchObject({ statusCode: 401 });
    expect(await ids()).toEqual([9_007_199_254_740_993n]);
  });
});

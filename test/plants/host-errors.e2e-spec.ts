import { STATUS_CODES } from 'node:http';
import {
  BadRequestException,
  ConflictException,
  ConsoleLogger,
  type ExceptionFilter,
  ForbiddenException,
  HttpException,
  type INestApplication,
  type NestInterceptor,
  type PipeTransform,
  RequestTimeoutException,
  ServiceUnavailableException,
  UnauthorizedException,
  ValidationPipe,
} from '@nestjs/common';
import { APP_FILTER, APP_GUARD, APP_INTERCEPTOR, APP_PIPE } from '@nestjs/core';
import { map, throwError, timeout } from 'rxjs';
import { errorCatalogue, PlantsModule } from '../../src/plants';
import { errorBodies, errorNumbers } from '../support/error-bodies';
import { makeFolder, removeFolder } from '../support/folder';
import {
  type adapters,
  createGuard,
  createRecordingLogger,
  startHost,
  createEarlyModule,
  createModule,
} from '../support/orchard';
import { lockDatabase, readPlants } from '../support/sqlite';
import { until } from '../support/until';

const FERN = '{"id":1,"name":"Fern"}';
const LARGE_ID = '{"id":9007199254740993,"name":" Fern "}';

let folder: string;
let file: string;
const started: INestApplication[] = [];
beforeEach(() => {
  folder = makeFolder();
  file = `${folder}/plants.db`;
});
afterEach(async () => {
  jest.restoreAllMocks();
  for (const each of started.splice(0)) await each.close();
  removeFolder(folder);
});

async function start(...parameters: Parameters<typeof startHost>): Promise<URL> {
  const { app, url } = await startHost(...parameters);
  started.push(app);
  return url;
}

async function post(url: URL, headers: Record<string, string> = {}, body = FERN) {
  const response = await fetch(new URL('/api/v1/plants', url), {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body,
    redirect: 'manual',
  });
  return {
    status: response.status,
    body: await response.json(),
    headers: Object.fromEntries(response.headers),
  };
}

/** Creates the module with a guard that throws. */
const guardedBy = (exception: unknown) =>
  PlantsModule.forRoot({
    sqlite: file,
    guard: createGuard(() => {
      throw exception;
    }),
  });

/** Creates the module without tokens, and a global interceptor of the host. */
const intercepted = (interceptor: NestInterceptor) => [
  PlantsModule.forRoot({ sqlite: file, guard: false }),
  createModule({ provide: APP_INTERCEPTOR, useValue: interceptor }),
];

/** Creates an error like those of the package http-errors, whose status Nest also uses. */
const createHttpError = (statusCode: number, headers: object | null = {}) =>
  Object.assign(new Error('of the host'), { statusCode, headers });

describe.each<keyof typeof adapters>(['Fastify', 'Express'])('PlantsModule on %s', (adapter) => {
  const { malformedRequest } = errorNumbers;
  const unprocessable = { error: 422 * 100, message: STATUS_CODES[422] };
  const paymentRequired = { error: 402 * 100, message: 'of the host' };
  const bearer = { authorization: 'Bearer x' };
  it.each<[string, object & { error: number }, unknown, Record<string, string>?]>([
    ['a 401', errorBodies.missingCredentials, new UnauthorizedException()],
    ['a 401 for a bearer token', errorBodies.invalidToken, new UnauthorizedException(), bearer],
    ['a 403', errorBodies.forbidden, new ForbiddenException('no key')],
    ['a 404 of http-errors', errorBodies.notFound, createHttpError(404)],
    ['a 429 of http-errors', errorBodies.tooManyRequests, createHttpError(429)],
    ['a 503', errorBodies.unavailable, new ServiceUnavailableException()],
    [
      'a 400 with several messages',
      { error: malformedRequest, message: 'one; two' },
      new BadRequestException(['one', 'two']),
    ],
    ['a 422 without a message', unprocessable, new HttpException({ code: 'x' }, 422)],
    ['a 422 without a response', unprocessable, new HttpException(null as never, 422)],
    ['a 422 made of an error', unprocessable, new HttpException(new Error('secret'), 422)],
    ['a 402 of http-errors', paymentRequired, createHttpError(402)],
    ['a 402 without headers', paymentRequired, createHttpError(402, null)],
    ['a 200', errorBodies.internal, new HttpException('of the host', 200)],
    ['a 999', errorBodies.internal, new HttpException('of the host', 999)],
    ['an error', errorBodies.internal, new Error('secret')],
    ['undefined', errorBodies.internal, undefined],
  ])(
    'responds to a guard that throws %s with %j',
    async (_what, expected, exception, headers = {}) => {
      const url = await start(adapter, [guardedBy(exception)]);

      const response = await post(url, headers);

      expect(response).toMatchObject({ status: Math.floor(expected.error / 100), body: expected });
    },
  );

  it('keeps every status that a guard throws, with a number from the catalogue or from the status', async () => {
    const guard = createGuard((context) => {
      const request = context.switchToHttp().getRequest<{ headers: Record<string, string> }>();
      throw new HttpException('of the host', Number(request.headers['x-status']));
    });
    const url = await start(adapter, [PlantsModule.forRoot({ sqlite: file, guard })]);
    const usual = new Map(Object.values(errorCatalogue).map((each) => [each.error, each.meaning]));

    // A 304 has no body, and fetch fails for a 407.
    const statuses = Object.keys(STATUS_CODES).map(Number);
    for (const status of statuses.filter((each) => each >= 300 && ![304, 407].includes(each))) {
      const response = await post(url, { 'x-status': `${status}` });

      const { error, message } = response.body as { error: number; message: string };
      // When the host stops waiting, the plant may be stored.
      const expected = status === 408 ? 504 : status;
      expect([status, response.status, error]).toEqual([status, expected, expected * 100]);
      const ofStatus = status < 500 ? 'of the host' : errorBodies.internal.message;
      expect([ofStatus, usual.get(error)]).toContain(message);
    }
  });

  it.each([429, 503])('keeps the Retry-After of a guard that throws %d', async (status) => {
    const thrown = await start(adapter, [guardedBy(createHttpError(status, { 'retry-after': 7 }))]);
    const guard = createGuard((context) => {
      context.switchToHttp().getResponse<{ header: Headers['set'] }>().header('Retry-After', '7');
      throw new HttpException('of the host', status);
    });
    const set = await start(adapter, [PlantsModule.forRoot({ sqlite: `${file}2`, guard })]);

    for (const url of [thrown, set]) {
      expect(await post(url)).toMatchObject({ status, headers: { 'retry-after': '7' } });
    }
  });

  it('adds security headers to an error, and keeps headers that the host has set', async () => {
    const guard = createGuard((context) => {
      const response = context.switchToHttp().getResponse<{ header: Headers['set'] }>();
      response.header('WWW-Authenticate', 'Key');
      response.header('Cache-Control', 'private');
      throw new UnauthorizedException();
    });
    const url = await start(adapter, [PlantsModule.forRoot({ sqlite: file, guard })]);

    expect((await post(url)).headers).toMatchObject({
      'www-authenticate': 'Key',
      'cache-control': 'private',
      'x-content-type-options': 'nosniff',
      'content-security-policy':
        "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    });
  });

  it.each([502, 500, 501])('logs one entry with the cause for a %d of the host', async (status) => {
    const logger = createRecordingLogger();
    const exception = new HttpException('of the host', status);
    const url = await start(adapter, [guardedBy(exception)], { logger });

    await post(url);

    const calls = logger.error.mock.calls as unknown[][];
    expect(calls).toEqual([[expect.objectContaining({ cause: exception }), undefined, 'Errors']]);
  });

  it("logs one entry per failure through Nest's logger", async () => {
    const output = jest.spyOn(process.stderr, 'write').mockReturnValue(true);
    const logger = new ConsoleLogger({ colors: false, logLevels: ['error'] });
    const url = await start(adapter, [guardedBy(new Error('of the host'))], { logger });

    await post(url);

    const text = output.mock.calls.map(([line]) => String(line)).join('');
    expect(text.match(/\[Errors\]/g)).toHaveLength(1);
    expect(text).toContain(errorBodies.internal.message);
    expect(text).toMatch(/Error: of the host\n +at /);
    expect(text).not.toContain('Object(0)');
  });

  it.each<[string, NestInterceptor]>([
    [
      'RequestTimeoutException',
      {
        intercept: (_context, next) =>
          next
            .handle()
            .pipe(
              timeout({ each: 100, with: () => throwError(() => new RequestTimeoutException()) }),
            ),
      },
    ],
    ['TimeoutError of RxJS', { intercept: (_context, next) => next.handle().pipe(timeout(100)) }],
  ])('returns 50400 when an interceptor throws a %s', async (_what, interceptor) => {
    const url = await start(adapter, intercepted(interceptor));
    const lock = lockDatabase(file);

    const response = await post(url);
    lock.close();

    expect(response).toMatchObject({ status: 504, body: errorBodies.outcomeUnknown });
    await until(() => readPlants(file).length === 1);
  });

  it('responds with the status of an exception that an interceptor throws', async () => {
    const reject: NestInterceptor = {
      intercept: () => throwError(() => new ConflictException('of the host')),
    };
    const url = await start(adapter, intercepted(reject));

    expect(await post(url)).toMatchObject({
      status: 409,
      body: { error: 409 * 100, message: 'of the host' },
    });
    expect(readPlants(file)).toEqual([]);
  });

  it('stores the exact plant despite global guards, pipes and interceptors of the host', async () => {
    const seen: unknown[] = [];
    const guard = createGuard((context) => {
      const request = context.switchToHttp().getRequest<{
        headers: Record<string, string>;
        body: unknown;
      }>();
      seen.push(request.body);
      if (request.headers['x-key'] !== 'good') throw new ForbiddenException('no key');
      return true;
    });
    const wrap: NestInterceptor = {
      intercept: (context, next) => {
        seen.push(context.switchToHttp().getRequest<{ body: unknown }>().body);
        return next.handle().pipe(map((data: unknown) => ({ data })));
      },
    };
    const strict = { transform: true, whitelist: true, forbidNonWhitelisted: true };
    const url = await start(adapter, [
      ...intercepted(wrap),
      createModule(
        { provide: APP_GUARD, useClass: guard },
        { provide: APP_PIPE, useValue: new ValidationPipe(strict) },
      ),
    ]);
    const key = { 'x-key': 'good' };

    expect([
      await post(url, {}, LARGE_ID),
      await post(url, key, '{"id":9007199254740993,"name":" Fern ","other":1}'),
      await post(url, key, '{"id":1}'),
    ]).toMatchObject([
      { status: 403, body: errorBodies.forbidden },
      { status: 200, body: { data: { name: ' Fern ' } } },
      { status: 400, body: errorBodies.nameMissing },
    ]);
    expect(readPlants(file)).toEqual([{ id: 9007199254740993n, name: ' Fern ' }]);
    expect(new Set(seen)).toEqual(new Set([undefined]));
  });

  it('creates a plant although a global ValidationPipe validates parameters of type custom', async () => {
    const strict = { transform: true, whitelist: true, forbidNonWhitelisted: true };
    const pipe = new ValidationPipe({ ...strict, validateCustomDecorators: true });
    const url = await start(adapter, [
      PlantsModule.forRoot({ sqlite: file, guard: false }),
      createModule({ provide: APP_PIPE, useValue: pipe }),
    ]);

    expect(await post(url, {}, LARGE_ID)).toMatchObject({ status: 200, body: { name: ' Fern ' } });
  });

  it('responds with the message of a global pipe that rejects parameters of type custom', async () => {
    const pipe: PipeTransform = {
      transform: (value: unknown, { type }) => {
        if (type === 'custom') throw new BadRequestException(['of the pipe']);
        return value;
      },
    };
    const url = await start(adapter, [
      PlantsModule.forRoot({ sqlite: file, guard: false }),
      createModule({ provide: APP_PIPE, useValue: pipe }),
    ]);

    expect(await post(url)).toMatchObject({
      status: 400,
      body: { error: errorNumbers.malformedRequest, message: 'of the pipe' },
    });
  });

  it("responds to its own errors instead of the host's filters, which respond to errors of middleware", async () => {
    const filtered: unknown[] = [];
    const filter: ExceptionFilter = {
      catch: (exception, host) => {
        filtered.push(exception);
        const response = host
          .switchToHttp()
          .getResponse<{ status: (code: number) => { send: (body: object) => void } }>();
        response.status(418).send({ orchard: true });
      },
    };
    const url = await start(
      adapter,
      [
        guardedBy(new UnauthorizedException()),
        createModule({ provide: APP_FILTER, useValue: filter }),
        createEarlyModule((message, _request, next) => {
          if (message.headers['x-broken'] === undefined) next();
          else (next as (error: Error) => void)(new Error('of middleware'));
        }),
      ],
      {},
      (app) => app.useGlobalFilters(filter),
    );

    expect(await post(url)).toMatchObject({ status: 401, body: errorBodies.missingCredentials });
    expect(filtered).toEqual([]);
    expect(await post(url, { 'x-broken': 'yes' })).toMatchObject({ status: 418 });
  });
});

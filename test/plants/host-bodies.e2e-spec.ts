import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { PassThrough, pipeline, Readable } from 'node:stream';
import { json as parseJson, text } from 'node:stream/consumers';
import { createGunzip, gzipSync } from 'node:zlib';
import {
  type DynamicModule,
  type INestApplication,
  type MiddlewareConsumer,
  Module,
  RequestMethod,
} from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { FastifyInstance } from 'fastify';
import { type ErrorBody, PlantsModule } from '../../src/plants';
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
import { readPlants } from '../support/sqlite';
import { openConnection, splitResponses } from '../support/wire';

const TOKEN = 'host-token';
const FERN = '{"id":1,"name":"Fern"}';
const LARGE_ID = '{"id":9007199254740993,"name":" Fern "}';
const LARGE_PLANTS = [{ id: 9_007_199_254_740_993n, name: ' Fern ' }];
const BIG = Buffer.alloc(2 ** 20, ' ');

let folder: string;
let file: string;
const started: INestApplication[] = [];
beforeEach(() => {
  folder = makeFolder();
  file = `${folder}/plants.db`;
});
afterEach(async () => {
  for (const each of started.splice(0)) await each.close();
  removeFolder(folder);
});

async function start(...parameters: Parameters<typeof startHost>): Promise<URL> {
  const { app, url } = await startHost(...parameters);
  started.push(app);
  return url;
}

const plantsModule = (bodyLimit = 2 ** 20) =>
  PlantsModule.forRoot({ sqlite: file, auth: { tokens: [TOKEN] }, bodyLimit });

/** Sends a request with a body, and returns the response. */
async function post(
  url: URL,
  body: string | Buffer,
  headers: Record<string, string> = {},
  path = '/api/v1/plants',
) {
  const outgoing = request(new URL(path, url), {
    method: 'POST',
    headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json', ...headers },
  });
  outgoing.end(body);
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
  return { status: response.statusCode, body: JSON.parse(await text(response)) as ErrorBody };
}

const rejectedWith = (body: ErrorBody) => ({ status: Math.floor(body.error / 100), body });

/** Sends requests at once on one connection, and returns the statuses of the responses. */
async function statusesOnOneConnection(url: URL, requests: Buffer[]): Promise<number[]> {
  const socket = openConnection(url);
  socket.write(Buffer.concat(requests));
  const responses = splitResponses(await text(socket));
  return responses.map(({ head }) => Number(head.split(' ')[1]));
}

/** Creates a request with a body, as bytes. */
function createRequest(path: string, headers: string[], body: Buffer): Buffer {
  const head = [`POST ${path} HTTP/1.1`, 'Host: x', `Content-Length: ${body.length}`, ...headers];
  return Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), body]);
}

const lastTree = createRequest(
  '/api/v1/trees',
  ['Content-Type: application/json', 'Connection: close'],
  Buffer.from('{}'),
);

describe.each<keyof typeof adapters>(['Fastify', 'Express'])('PlantsModule on %s', (adapter) => {
  it('responds to a request without a token before its body has arrived', async () => {
    const url = await start(adapter, [plantsModule()]);
    const socket = openConnection(url);
    socket.write('POST /api/v1/plants HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n');

    const [chunk] = (await once(socket, 'data')) as [Buffer];

    expect(chunk.toString()).toMatch(/^HTTP\/1.1 401 /);
    socket.destroy();
  });

  type EarlyCode = Parameters<typeof createEarlyModule>[0];

  it.each<[string, EarlyCode]>([
    ['reads it to its end', (message, _request, next) => message.resume().on('end', next)],
    [
      'listens for data',
      (message, _request, next) => {
        message.on('data', () => undefined);
        setImmediate(next);
      },
    ],
  ])('responds to an empty body when middleware %s', async (_what, run) => {
    const url = await start(adapter, [createEarlyModule(run), plantsModule()]);

    const responses = [
      await post(url, ''),
      await post(url, '', { 'transfer-encoding': 'chunked' }),
      await post(url, '', { authorization: 'Bearer x' }),
    ];

    const empty = rejectedWith(errorBodies.empty);
    expect(responses).toEqual([empty, empty, rejectedWith(errorBodies.invalidToken)]);
  });

  it.each<[string, EarlyCode]>([
    [
      'pauses it',
      (message, _request, next) => {
        message.pause();
        next();
      },
    ],
    [
      'makes strings of it',
      (message, _request, next) => {
        message.setEncoding('utf8');
        next();
      },
    ],
  ])('reads a body exactly when middleware %s', async (_what, run) => {
    const url = await start(adapter, [createEarlyModule(run), plantsModule()]);

    expect(await post(url, LARGE_ID)).toEqual({ status: 200, body: { name: ' Fern ' } });
    expect(readPlants(file)).toEqual(LARGE_PLANTS);
  });

  it('rejects an id that middleware may have rounded, and logs the remedy once', async () => {
    const logger = createRecordingLogger();
    const parse = createEarlyModule((message, early, next) => {
      void parseJson(message).then((body) => {
        early.body = body;
        next();
      });
    });
    const url = await start(adapter, [parse, plantsModule()], { logger });

    expect([
      await post(url, LARGE_ID),
      await post(url, '{"id":1e400,"name":"Fern"}'),
      await post(url, '{"id":-9007199254740991,"name":"Fern"}'),
    ]).toEqual([
      rejectedWith(errorBodies.idRounded),
      rejectedWith(errorBodies.idNotInt64),
      { status: 200, body: { name: 'Fern' } },
    ]);
    expect(readPlants(file)).toEqual([{ id: -9_007_199_254_740_991n, name: 'Fern' }]);
    const lines = logger.warn.mock.calls.map(([line]) => String(line));
    const warnings = lines.filter((line) => line.startsWith('Middleware of the application'));
    expect(warnings).toEqual([expect.stringContaining('/api/v1/plants before PlantsModule')]);
  });

  it.each([true, false])(
    'limits a body that middleware has read, with its bytes kept: %j',
    async (keepsBytes) => {
      const read = createEarlyModule((message, early, next) => {
        void text(message).then((content) => {
          if (keepsBytes) early.rawBody = Buffer.from(content);
          early.body = JSON.parse(content) as unknown;
          next();
        });
      });
      const url = await start(adapter, [read, plantsModule(100)]);

      expect([await post(url, FERN.padEnd(101)), await post(url, FERN.padEnd(100))]).toEqual([
        rejectedWith({
          error: errorNumbers.tooLarge,
          message: 'The body is larger than the limit of 100 bytes.',
        }),
        { status: 200, body: { name: 'Fern' } },
      ]);
    },
  );

  it('reads the exact bytes that middleware has kept', async () => {
    const keep = createEarlyModule((message, early, next) => {
      void text(message).then((content) => {
        early.rawBody = Buffer.from(content);
        next();
      });
    });
    const url = await start(adapter, [keep, plantsModule()]);

    expect(await post(url, LARGE_ID)).toEqual({ status: 200, body: { name: ' Fern ' } });
    expect(readPlants(file)).toEqual(LARGE_PLANTS);
  });

  const { POST } = RequestMethod;
  it.each<[string, Parameters<INestApplication['setGlobalPrefix']>[1]]>([
    ['path', { exclude: ['plants'] }],
    ['path and method', { exclude: [{ path: 'plants', method: POST }] }],
  ])('reads the body itself when the global prefix excludes the %s', async (_what, options) => {
    const logger = createRecordingLogger();
    const url = await start(adapter, [plantsModule()], { logger }, (app) =>
      app.setGlobalPrefix('api', options),
    );

    expect([
      await post(url, LARGE_ID, {}, '/v1/plants'),
      await post(url, '{', {}, '/v1/plants'),
      await post(url, '{', { authorization: '' }, '/v1/plants'),
    ]).toMatchObject([
      { status: 200 },
      { status: 400, body: { error: errorNumbers.empty } },
      rejectedWith(errorBodies.missingCredentials),
    ]);
    expect(readPlants(file)).toEqual(LARGE_PLANTS);
    expect(logger.warn).not.toHaveBeenCalled();
  });

  it('reads the body itself behind middleware for POST requests to this path', async () => {
    const seen = jest.fn((_request: unknown, _response: unknown, next: () => void) => {
      next();
    });
    @Module({ imports: [plantsModule()] })
    class FeatureModule {
      configure(consumer: MiddlewareConsumer): void {
        consumer.apply(seen).forRoutes({ path: 'plants', method: POST, version: '1' });
      }
    }
    const url = await start(adapter, [FeatureModule]);

    expect(await post(url, LARGE_ID)).toMatchObject({ status: 200 });
    expect(readPlants(file)).toEqual(LARGE_PLANTS);
    expect(seen).toHaveBeenCalledTimes(1);
  });
});

/** Creates a module of a host on Fastify. Its hook replaces each body with a stream. */
const withReplacement = (replace: (payload: Readable) => Readable): DynamicModule =>
  createModule({
    provide: 'replacement',
    inject: [HttpAdapterHost],
    useFactory: ({ httpAdapter }: HttpAdapterHost) => {
      const instance = httpAdapter.getInstance<FastifyInstance>();
      instance.addHook('preParsing', (_request, _reply, payload, done) => {
        done(null, replace(payload as Readable));
      });
    },
  });

describe('a hook of Fastify that replaces the body', () => {
  const replacements: Record<string, (payload: Readable) => Readable> = {
    'a pipe': (payload) => payload.pipe(new PassThrough()),
    'two pipes': (payload) => payload.pipe(new PassThrough()).pipe(new PassThrough()),
    // @fastify/compress 9 does this.
    'a paused pipeline': (payload) => pipeline(payload, new PassThrough().pause(), () => undefined),
    'an iterator': (payload) => Readable.from(payload),
    // This stream fails at the first byte.
    'a broken pipe': (payload) => payload.pipe(createGunzip()).on('error', () => undefined),
  };

  describe.each(Object.entries(replacements))('by %s', (_how, replace) => {
    it('does not stop the connection after a rejection before the body is read', async () => {
      const url = await start('Fastify', [withReplacement(replace), plantsModule()]);
      const good = `Authorization: Bearer ${TOKEN}`;
      const rejected = [
        ['Authorization: Bearer x', 'Content-Type: application/json'],
        [good, 'Content-Type: text/plain'],
        [good, 'Content-Type: application/json', 'Content-Encoding: gzip'],
      ];

      const statuses = await statusesOnOneConnection(url, [
        ...rejected.map((headers) => createRequest('/api/v1/plants', headers, BIG)),
        createRequest('/api/v1/plants', [good, 'Content-Type: application/json'], BIG),
        lastTree,
      ]);

      expect(statuses.slice(0, 4)).toEqual([401, 400, 400, 400]);
      expect(statuses).toHaveLength(5);
    });
  });

  it.each(['a pipe', 'two pipes', 'a paused pipeline', 'an iterator'])(
    'is read exactly by %s',
    async (how) => {
      const url = await start('Fastify', [
        withReplacement((payload) => replacements[how]?.(payload) ?? payload),
        plantsModule(),
      ]);

      expect(await post(url, LARGE_ID.padEnd(500_000))).toMatchObject({ status: 200 });
      expect(await post(url, BIG.toString() + FERN)).toEqual(rejectedWith(errorBodies.tooLarge));
      expect(readPlants(file)).toEqual(LARGE_PLANTS);
    },
  );

  it('does not end the process when the client disconnects while the guard decides', async () => {
    const passOnErrors = withReplacement((payload) => {
      const transform = new PassThrough();
      payload.on('error', (error) => transform.destroy(error));
      return payload.pipe(transform);
    });
    const asked = new PassThrough();
    const guard = createGuard(async (context) => {
      const { raw } = context.switchToHttp().getRequest<{ raw: IncomingMessage }>();
      if (raw.headers['x-leaves'] === undefined) return true;
      asked.write('asked');
      if (!raw.errored) await new Promise((resolve) => raw.once('close', resolve));
      return raw.headers['x-leaves'] === 'accepted';
    });
    const logger = createRecordingLogger();
    const url = await start(
      'Fastify',
      [passOnErrors, PlantsModule.forRoot({ sqlite: file, guard })],
      { logger },
    );

    for (const leaves of ['accepted', 'rejected']) {
      const socket = openConnection(url);
      const headers = [`X-Leaves: ${leaves}`, 'Content-Type: application/json'];
      const whole = createRequest('/api/v1/plants', headers, Buffer.alloc(1000, ' '));
      socket.write(whole.subarray(0, -990));
      await once(asked, 'data');
      socket.destroy();
    }

    expect(await post(url, FERN)).toMatchObject({ status: 200 });
    expect(logger.error).not.toHaveBeenCalled();
  });

  it.each([
    ['truncated', gzipSync(FERN).subarray(0, -9)],
    ['broken', Buffer.from(FERN)],
  ])('returns a 400 when it cannot decompress a %s body', async (_what, body) => {
    const logger = createRecordingLogger();
    const url = await start(
      'Fastify',
      [withReplacement((payload) => payload.pipe(createGunzip())), plantsModule()],
      { logger },
    );

    expect(await post(url, gzipSync(FERN))).toMatchObject({ status: 200 });
    expect(await post(url, body)).toEqual({
      status: 400,
      body: { error: errorNumbers.empty, message: 'The body cannot be decoded.' },
    });
    expect(logger.error).not.toHaveBeenCalled();
  });

  it.each([413, 502])('keeps the status of its own error: %d', async (statusCode) => {
    const fail = (payload: Readable): Readable => {
      const failing = new PassThrough();
      payload.resume().on('end', () => {
        failing.destroy(Object.assign(new Error('of the host'), { statusCode }));
      });
      return failing;
    };
    const url = await start('Fastify', [withReplacement(fail), plantsModule()]);

    expect(await post(url, FERN)).toMatchObject({
      status: statusCode,
      body: { error: statusCode * 100 },
    });
  });
});

import { PassThrough } from 'node:stream';
import { Controller, Module, Post, Req, Res } from '@nestjs/common';
import { HttpAdapterHost, NestFactory } from '@nestjs/core';
import type { FastifyRequest } from 'fastify';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { type HostRequest, type HostResponse, nodeRequest, nodeResponse } from '../http/request';
import { BodyMemory } from './body-memory';
import { disableHostBodyParsers, ReadsRawBody } from './own-body';
import { readBody } from './read-body';

@Controller()
class Routes {
  constructor(host: HttpAdapterHost) {
    disableHostBodyParsers(host);
  }

  @Post('own')
  @ReadsRawBody()
  async own(
    @Req() request: HostRequest & FastifyRequest,
    @Res({ passthrough: true }) response: HostResponse,
  ): Promise<object> {
    const type = request.headers['content-type'];
    const message = nodeRequest(request);
    const text = String(await readBody(message, nodeResponse(response), 100, new BodyMemory()));
    return { type, body: request.body, text };
  }
}

@Module({ controllers: [Routes] })
class Host {}

/** Tests the undocumented behaviour on which `fastify.ts` depends. */
describe('a host on Fastify', () => {
  let app: NestFastifyApplication;
  beforeEach(async () => {
    app = await NestFactory.create<NestFastifyApplication>(Host, new FastifyAdapter(), {
      logger: false,
    });
  });
  afterEach(() => app.close());

  const instance = () => app.getHttpAdapter().getInstance();

  const post = async (type: string) => {
    const headers = { 'content-type': type };
    const payload = '{"id": 1.0}';
    return (await app.inject({ method: 'POST', url: '/own', headers, payload })).json<unknown>();
  };

  it.each(['application/json', 'application/json; malformed', 'text/plain', ''])(
    'leaves a body of type "%s" unread, and keeps its type',
    async (type) => {
      await app.init();

      expect(await post(type)).toEqual({ type, text: '{"id": 1.0}' });
    },
  );

  it('leaves the body unread even if a hook has read the media type, which Fastify caches', async () => {
    instance().addHook('onRequest', (request, _reply, done) => {
      expect(request.mediaType).toBe('application/json');
      done();
    });
    await app.init();

    expect(await post('application/json')).toMatchObject({ text: '{"id": 1.0}' });
  });

  it('keeps the payload with which a hook of the host replaced the body', async () => {
    instance().addHook('preParsing', (_request, _reply, payload, done) => {
      const other = new PassThrough();
      payload.resume().on('end', () => other.end('other'));
      done(null, other);
    });
    await app.init();

    expect(await post('application/json')).toMatchObject({ text: 'other' });
  });
});

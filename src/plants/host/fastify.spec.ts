import { PassThrough } from 'node:stream';
import { Controller, Module, Post, Req } from '@nestjs/common';
import { HttpAdapterHost, NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { type HostRequest, nodeRequest } from '../http/request';
import { keepParsersAway, ReadsBody } from './own-body';

@Controller()
class Routes {
  constructor(host: HttpAdapterHost) {
    keepParsersAway(host, 100);
  }

  @Post('own')
  @ReadsBody()
  own(@Req() request: HostRequest): object {
    const { 'content-type': type } = nodeRequest(request).headers;
    return { type, text: String(request.body) };
  }
}

@Module({ controllers: [Routes] })
class Host {}

/** What `fastify.ts` says that it depends on. */
describe('a host on Fastify', () => {
  let app: NestFastifyApplication;
  beforeEach(async () => {
    app = await NestFactory.create<NestFastifyApplication>(Host, new FastifyAdapter(), {
      logger: false,
    });
  });
  afterEach(() => app.close());

  const post = async (type: string) => {
    const headers = { 'content-type': type };
    const payload = '{"id": 1.0}';
    return (await app.inject({ method: 'POST', url: '/own', headers, payload })).json<unknown>();
  };

  it.each(['application/json', 'application/json; malformed', 'text/plain', ''])(
    'hands out the bytes of a body of type "%s", and its type as it was',
    async (type) => {
      await app.init();

      expect(await post(type)).toEqual({ type, text: '{"id": 1.0}' });
    },
  );

  it('hands out what its hooks have put in the place of the body', async () => {
    app
      .getHttpAdapter()
      .getInstance()
      .addHook('preParsing', (_request, _reply, payload, done) => {
        const other = new PassThrough();
        payload.resume().on('end', () => other.end('other'));
        done(null, other);
      });
    await app.init();

    expect(await post('application/json')).toMatchObject({ text: 'other' });
  });
});

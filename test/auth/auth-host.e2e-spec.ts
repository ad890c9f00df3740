import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Controller, Get, Logger, Module, Req } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { Test } from '@nestjs/testing';
import {
  type AuthOptions,
  BearerGuard,
  type Caller,
  createTokenVerifier,
  TokenVerifier,
} from '../../src/auth';
import { releaseClock, stopClock } from '../support/clock';
import { makeFolder, removeFolder } from '../support/folder';
import { AUDIENCE, makeKey, OpenIdProvider } from '../support/openid-provider';

@Controller('who')
class WhoController {
  @Get()
  who(@Req() request: { caller?: Caller }): Caller | undefined {
    return request.caller;
  }
}

describe('a Nest application that mounts guard and verifier', () => {
  let folder: string;
  let app: NestFastifyApplication | undefined;
  beforeEach(() => {
    stopClock();
    jest.spyOn(Logger.prototype, 'log').mockImplementation();
    folder = makeFolder();
  });
  afterEach(async () => {
    await app?.close();
    app = undefined;
    jest.restoreAllMocks();
    releaseClock();
    removeFolder(folder);
  });

  async function start(options: AuthOptions): Promise<void> {
    @Module({
      controllers: [WhoController],
      providers: [
        { provide: APP_GUARD, useClass: BearerGuard },
        { provide: TokenVerifier, useFactory: () => createTokenVerifier(options) },
      ],
    })
    class HostModule {}

    const module = await Test.createTestingModule({ imports: [HostModule] }).compile();
    app = module.createNestApplication<NestFastifyApplication>(new FastifyAdapter());
    await app.init();
  }

  async function who(token: string): Promise<unknown> {
    const response = await app?.inject({
      url: '/who',
      headers: { authorization: `Bearer ${token}` },
    });
    return response?.json();
  }

  it('finds the caller on the request, whatever the source of the token, and never the token', async () => {
    const provider = await OpenIdProvider.start(makeKey('ES256'));
    const tokensFile = join(folder, 'tokens.txt');
    writeFileSync(tokensFile, 'from-the-file laptop');
    await start({ tokens: ['as-it-is'], tokensFile, issuer: provider.issuer, audience: AUDIENCE });

    const jwt = await provider.accessToken();

    expect(await who('as-it-is')).toEqual({ name: 'token 1' });
    expect(await who('from-the-file')).toEqual({ name: 'laptop' });
    expect(await who(jwt)).toEqual({ name: AUDIENCE, issuer: provider.issuer });
    expect(await who('unknown')).toMatchObject({ error: 40101 });
    await provider.stop();
  });

  it('stops following file and issuer when it is closed', async () => {
    const provider = await OpenIdProvider.start(makeKey('ES256'));
    const tokensFile = join(folder, 'tokens.txt');
    writeFileSync(tokensFile, '');
    await start({ tokensFile, issuer: provider.issuer, audience: AUDIENCE });
    expect(await who(await provider.accessToken())).toMatchObject({ name: AUDIENCE });
    expect(jest.getTimerCount()).toBe(2);

    await app?.close();

    expect(jest.getTimerCount()).toBe(0);
    await provider.stop();
  });

  it('refuses every token without options', async () => {
    await start({});

    expect(await who('anything')).toMatchObject({ error: 40101 });
  });

  it.each<[AuthOptions, string]>([
    [
      { tokens: ['valid', 'a secret'] },
      'tokens[1] must be a token or sha256:HEX, which scope=create or scope=metrics may follow',
    ],
    [{ issuer: 'https://id.example' }, 'issuer requires audience'],
    [{ audience: 'x', scope: 'y' }, 'audience requires issuer; scope requires issuer'],
  ])('does not start with %j', async (options, message) => {
    await expect(start(options)).rejects.toThrow(new TypeError(message));
  });
});

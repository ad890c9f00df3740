import {
  All,
  Body,
  Controller,
  Module,
  Post,
  Req,
  Res,
  Version,
  VersioningType,
} from '@nestjs/common';
import type { INestApplication } from '@nestjs/common';
import { HttpAdapterHost, NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { type HostRequest, type HostResponse, nodeRequest, nodeResponse } from '../http/request';
import { BodyMemory } from './body-memory';
import { disableHostBodyParsers, ReadsRawBody } from './own-body';
import { readBody } from './read-body';

@Controller()
class Routes {
  constructor(host: HttpAdapterHost) {
    disableHostBodyParsers(host);
  }

  @Post('own/:place')
  @ReadsRawBody()
  async own(
    @Req() request: HostRequest & { readonly _body?: boolean },
    @Res({ passthrough: true }) response: HostResponse,
  ): Promise<object> {
    const message = nodeRequest(request);
    const isUnread = !message.readableDidRead;
    const isMarked = request._body;
    const text = String(await readBody(message, nodeResponse(response), 100, new BodyMemory()));
    return { isUnread, isMarked, text, isMarkedAfterwards: '_body' in request };
  }

  @Post('shared')
  @Version('1')
  @ReadsRawBody()
  shared(@Body() body: object): object {
    return { body };
  }

  @Post('shared')
  @Version('2')
  sharedOfHost(@Body() body: object): object {
    return { body };
  }
}

/** A route of the host that matches every path under `any/` before the route of `Hidden`. */
@Controller()
class CatchAll {
  @All('any/*rest')
  any(@Body() body: object): object {
    return { body };
  }
}

@Controller()
class Hidden {
  @Post('any/own')
  @ReadsRawBody()
  own(): string {
    return 'hidden';
  }
}

@Module({ controllers: [CatchAll, Hidden, Routes] })
class Host {}

/** Tests the undocumented behaviour on which `express.ts` depends. */
describe('a host on Express', () => {
  let app: INestApplication;
  beforeEach(async () => {
    app = await NestFactory.create(Host, new ExpressAdapter(), { logger: false });
    app.enableVersioning({ type: VersioningType.HEADER, header: 'version', defaultVersion: '1' });
    await app.listen(0, '127.0.0.1');
  });
  afterEach(() => app.close());

  const post = async (path: string, version = '1') => {
    const response = await fetch(new URL(path, await app.getUrl()), {
      method: 'POST',
      headers: { 'content-type': 'application/json', version },
      body: '{"id": 1.0}',
    });
    return [response.status, await response.json()] as const;
  };

  it('leaves the body to a handler that reads it, and removes the marks of the request then', async () => {
    expect(await post('/own/a%20b')).toEqual([
      201,
      { isUnread: true, isMarked: true, text: '{"id": 1.0}', isMarkedAfterwards: false },
    ]);
  });

  it('parses the body for a path that @ReadsRawBody shares with another route', async () => {
    expect(await post('/shared', '2')).toEqual([201, { body: { id: 1 } }]);
  });

  it('parses the body when an earlier route of the host matches the path too', async () => {
    expect(await post('/any/own')).toEqual([200, { body: { id: 1 } }]);
  });

  it('returns 400 for a path with a malformed escape', async () => {
    const response = await fetch(`${await app.getUrl()}/own/%zz`, { method: 'POST' });

    expect(response.status).toBe(400);
  });
});

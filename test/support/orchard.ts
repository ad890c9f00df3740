import {
  type ArgumentMetadata,
  type ArgumentsHost,
  Body,
  Catch,
  Controller,
  type ExceptionFilter,
  Get,
  HttpException,
  type INestApplication,
  Module,
  type ModuleMetadata,
  type NestApplicationOptions,
  type PipeTransform,
  Post,
  VersioningType,
} from '@nestjs/common';
import {
  AbstractHttpAdapter,
  APP_FILTER,
  APP_PIPE,
  HttpAdapterHost,
  NestFactory,
} from '@nestjs/core';
import { ExpressAdapter, type NestExpressApplication } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { ApiProperty, ApiSchema } from '@nestjs/swagger';

/** A schema of the host that has the name of one of ours. */
@ApiSchema({ name: 'Plant' })
class OrchardPlant {
  @ApiProperty()
  rows!: number;
}

@Controller('trees')
class TreesController {
  @Post()
  plant(@Body() body: OrchardPlant): OrchardPlant {
    return body;
  }

  @Get('broken')
  broken(): never {
    throw new Error('of the host');
  }
}

/** A filter that knows nothing of the Error body. */
@Catch()
class OrchardFilter implements ExceptionFilter {
  constructor(private readonly adapterHost: HttpAdapterHost) {}
  catch(exception: unknown, host: ArgumentsHost): void {
    const status = exception instanceof HttpException ? exception.getStatus() : 500;
    const response: unknown = host.switchToHttp().getResponse();
    this.adapterHost.httpAdapter.reply(response, { orchard: String(exception) }, status);
  }
}

/** Changes the body of a route, as a host may. */
class TrimPipe implements PipeTransform {
  transform(value: object, { type }: ArgumentMetadata): object {
    if (type !== 'body') return value;
    const trim = (member: unknown) => (typeof member === 'string' ? member.trim() : member);
    return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, trim(member)]));
  }
}

/** The host's own feature, and the host's global filter and pipe. */
@Module({
  controllers: [TreesController],
  providers: [
    { provide: APP_FILTER, useClass: OrchardFilter },
    { provide: APP_PIPE, useClass: TrimPipe },
  ],
})
class OrchardModule {}

export const adapters = {
  Fastify: (): AbstractHttpAdapter => new FastifyAdapter({ bodyLimit: 4 * 2 ** 20 }),
  Express: (): AbstractHttpAdapter => new ExpressAdapter(),
};

/** A host that listens, with a global prefix, versions, and the given imports beside its own feature. */
export async function startHost(
  adapter: keyof typeof adapters,
  imports: NonNullable<ModuleMetadata['imports']>,
  options: NestApplicationOptions = {},
): Promise<{ app: INestApplication; url: URL }> {
  @Module({ imports: [OrchardModule, ...imports] })
  class HostModule {}

  const app = await NestFactory.create(HostModule, adapters[adapter](), {
    logger: false,
    abortOnError: false,
    ...options,
  });
  app.setGlobalPrefix('api');
  app.enableVersioning({ type: VersioningType.URI, defaultVersion: '1' });
  if (adapter === 'Express') {
    (app as NestExpressApplication).useBodyParser('json', { limit: '4mb' });
  }
  await app.listen(0, '127.0.0.1');
  return { app, url: new URL(await app.getUrl()) };
}

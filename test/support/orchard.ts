import {
  type ArgumentMetadata,
  type ArgumentsHost,
  Body,
  type CallHandler,
  type CanActivate,
  Catch,
  Controller,
  type ExceptionFilter,
  type ExecutionContext,
  ForbiddenException,
  Get,
  HttpException,
  Injectable,
  type INestApplication,
  Module,
  type ModuleMetadata,
  type NestApplicationOptions,
  type NestInterceptor,
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
import { map, type Observable } from 'rxjs';
import { fieldValues, type HostRequest, nodeRequest } from '../../src/plants/http/request';

/** A guard of the host: it knows who calls by a key. */
@Injectable()
export class KeyGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const request = nodeRequest(context.switchToHttp().getRequest<HostRequest>());
    if (fieldValues(request, 'x-key')[0] !== 'good') throw new ForbiddenException('no key');
    return true;
  }
}

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

class TrimPipe implements PipeTransform {
  transform(value: unknown, { type }: Pick<ArgumentMetadata, 'type'>): unknown {
    if (type === 'custom') return value;
    if (typeof value === 'string') return value.trim();
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, member]) => [key, this.transform(member, { type })]),
    );
  }
}

export class WrapInterceptor implements NestInterceptor {
  intercept(_context: ExecutionContext, next: CallHandler): Observable<unknown> {
    return next.handle().pipe(map((data: unknown) => ({ data })));
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

/**
 * A host with everything global: parsers with small limits, a guard, a strict ValidationPipe, a filter,
 * an interceptor that wraps answers, a prefix and versions; and with no flag for the module.
 */
const process = require('node:process');
require('reflect-metadata');

/** Bytes that the host's own routes take. */
const BODY_LIMIT = 300;

exports.startHost = async ({ common, core, createAdapter, plantStore }) => {
  class TreesController {
    plant(body) {
      return { received: body ?? null };
    }
    echo(id) {
      return `tree ${id}`;
    }
    guarded() {
      return 'in';
    }
    broken() {
      throw new Error('of the host');
    }
  }
  const guard = { canActivate: () => false };
  decorate(TreesController, 'plant', common.Post());
  common.Body()(TreesController.prototype, 'plant', 0);
  decorate(TreesController, 'echo', common.Get('number/:id'));
  common.Param('id')(TreesController.prototype, 'echo', 0);
  decorate(TreesController, 'guarded', common.Get('guarded'), common.UseGuards(guard));
  decorate(TreesController, 'broken', common.Get('broken'));
  common.Controller('trees')(TreesController);

  const { HttpException } = common;
  class OrchardFilter {
    catch(exception, host) {
      const status = exception instanceof HttpException ? exception.getStatus() : 500;
      const { httpAdapter } = app.get(core.HttpAdapterHost);
      httpAdapter.reply(host.switchToHttp().getResponse(), { orchard: exception.message }, status);
    }
  }
  common.Catch()(OrchardFilter);

  class AppModule {}
  const imports = [];
  if (process.env.PLANTS) {
    const options = JSON.parse(process.env.PLANTS);
    if (!options.postgres) options.sqlite = process.env.DATABASE;
    imports.push(plantStore.PlantsModule.forRootAsync({ useFactory: () => options }));
  }
  common.Module({ imports, controllers: [TreesController] })(AppModule);

  const adapter = createAdapter({ bodyLimit: BODY_LIMIT });
  const app = await core.NestFactory.create(AppModule, adapter, {
    logger: ['error', 'warn'],
    abortOnError: false,
  });
  app.setGlobalPrefix('api');
  app.enableVersioning({ type: common.VersioningType.URI, defaultVersion: '1' });
  app.useGlobalFilters(new OrchardFilter());
  app.useGlobalGuards({
    canActivate: (context) => context.switchToHttp().getRequest().headers['x-robot'] === undefined,
  });
  app.useGlobalPipes(
    new common.ValidationPipe({ whitelist: true, transform: true, forbidNonWhitelisted: true }),
  );
  app.useGlobalInterceptors({
    intercept: (_context, next) => next.handle().pipe(require('rxjs').map((data) => ({ data }))),
  });
  if (process.env.PLATFORM === 'express') {
    const express = require(
      require.resolve('express', { paths: [require.resolve('@nestjs/platform-express')] }),
    );
    app.use(express.json({ limit: BODY_LIMIT, type: ['json', 'text/json'] }));
    app.use(express.text({ limit: BODY_LIMIT }));
  }
  await app.listen(0, '127.0.0.1');
  process.stdout.write(`Listening on ${await app.getUrl()}\n`);
};

function decorate({ prototype }, name, ...decorators) {
  const descriptor = Object.getOwnPropertyDescriptor(prototype, name);
  for (const decorator of decorators) decorator(prototype, name, descriptor);
}

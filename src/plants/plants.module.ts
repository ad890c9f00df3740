import { type DynamicModule, Module } from '@nestjs/common';
import { PostgresPlantsRepository } from './persistence/postgres-plants.repository';
import { SqlitePlantsRepository } from './persistence/sqlite-plants.repository';
import { PlantsController } from './plants.controller';
import { ConfigurableModuleClass, MODULE_OPTIONS_TOKEN } from './plants.module-definition';
import type { PlantsModuleOptions } from './plants.options';
import { PlantsRepository } from './plants.repository';
import { PlantsService } from './plants.service';

/**
 * Everything that creating plants takes, for a host to mount.
 *
 * @example
 * ```ts
 * @Module({ imports: [PlantsModule.forRoot({ sqlite: 'data/plants.db' })] })
 * export class AppModule {}
 * ```
 */
@Module({
  controllers: [PlantsController],
  providers: [
    PlantsService,
    {
      provide: PlantsRepository,
      inject: [MODULE_OPTIONS_TOKEN],
      useFactory: openRepository,
    },
  ],
  exports: [PlantsService],
})
export class PlantsModule extends ConfigurableModuleClass {
  /** Mounts the module. Every option has a default. */
  static override forRoot(options: PlantsModuleOptions = {}): DynamicModule {
    return super.forRoot(options);
  }
}

function openRepository({
  sqlite = 'data/plants.db',
  postgres,
}: PlantsModuleOptions): Promise<PlantsRepository> {
  return postgres === undefined
    ? SqlitePlantsRepository.open(sqlite)
    : PostgresPlantsRepository.open(postgres);
}

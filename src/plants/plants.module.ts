import { type DynamicModule, Module } from '@nestjs/common';
import { ErrorFilter } from '../http';
import { NewPlantPipe } from './new-plant.pipe';
import {
  ASYNC_OPTIONS,
  type ASYNC_OPTIONS_TYPE,
  assertOptions,
  ConfigurableModuleClass,
  SYNC_OPTIONS,
} from './plants.module-definition';
import type { PlantsModuleMounting, PlantsModuleOptions } from './plants.options';
import { PlantsRepository } from './plants.repository';
import { PlantsService } from './plants.service';

/**
 * The feature that a host mounts: `POST /plants` and all it needs. Nothing in it is global; guard,
 * filter and pipe apply to its own route alone.
 *
 * @example
 * ```ts
 * @Module({ imports: [PlantsModule.forRoot({ sqlite: 'data/plants.db', auth: { tokens: ['…'] } })] })
 * export class AppModule {}
 * ```
 */
@Module({
  providers: [PlantsService, NewPlantPipe, ErrorFilter],
  exports: [PlantsService, PlantsRepository],
})
export class PlantsModule extends ConfigurableModuleClass {
  /**
   * Every option has a default, but for the store and the tokens in production.
   *
   * @throws TypeError when an option is undefined or unknown
   */
  static override forRoot(
    options: PlantsModuleOptions & Partial<PlantsModuleMounting> = {},
  ): DynamicModule {
    assertOptions(options, SYNC_OPTIONS);
    return super.forRoot(options);
  }

  /**
   * As {@link forRoot}, with options from a factory or a class, which are checked at the start.
   *
   * @throws TypeError when an option of the mounting is undefined or unknown
   */
  static override forRootAsync(options: typeof ASYNC_OPTIONS_TYPE): DynamicModule {
    assertOptions(options, ASYNC_OPTIONS);
    return super.forRootAsync(options);
  }
}

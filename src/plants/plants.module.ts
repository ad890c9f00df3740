import { type DynamicModule, Module } from '@nestjs/common';
import { ErrorFilter } from '../http';
import { NewPlantPipe } from './new-plant.pipe';
import {
  type ASYNC_OPTIONS_TYPE,
  assertDefined,
  ConfigurableModuleClass,
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
   * Outside production every option has a default.
   *
   * @throws TypeError when an option is undefined or unknown, as does the start
   */
  static override forRoot(
    options: PlantsModuleOptions & Partial<PlantsModuleMounting> = {},
  ): DynamicModule {
    return super.forRoot(assertDefined(options));
  }

  static override forRootAsync(options: typeof ASYNC_OPTIONS_TYPE): DynamicModule {
    return super.forRootAsync(assertDefined(options));
  }
}

import { type DynamicModule, Module } from '@nestjs/common';
import { ErrorFilter } from '../http';
import { NewPlantPipe } from './new-plant.pipe';
import { ConfigurableModuleClass } from './plants.module-definition';
import type { PlantsModuleMounting, PlantsModuleOptions } from './plants.options';
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
@Module({ providers: [PlantsService, NewPlantPipe, ErrorFilter], exports: [PlantsService] })
export class PlantsModule extends ConfigurableModuleClass {
  /** Every option has a default. */
  static override forRoot(
    options: PlantsModuleOptions & Partial<PlantsModuleMounting> = {},
  ): DynamicModule {
    return super.forRoot(options);
  }
}

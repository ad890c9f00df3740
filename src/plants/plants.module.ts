import { type DynamicModule, Module } from '@nestjs/common';
import { ErrorFilter } from '../http';
import { NewPlantPipe } from './new-plant.pipe';
import { ConfigurableModuleClass } from './plants.module-definition';
import type { PlantsModuleMounting, PlantsModuleOptions } from './plants.options';
import { PlantsService } from './plants.service';

/**
 * Everything that creating plants takes, for a host to mount. Nothing of it is global: guard, filter
 * and pipe govern its own route.
 *
 * @example
 * ```ts
 * @Module({ imports: [PlantsModule.forRoot({ sqlite: 'data/plants.db', auth: { tokens: ['…'] } })] })
 * export class AppModule {}
 * ```
 */
@Module({ providers: [PlantsService, NewPlantPipe, ErrorFilter], exports: [PlantsService] })
export class PlantsModule extends ConfigurableModuleClass {
  /** Mounts the module. Every option has a default. */
  static override forRoot(
    options: PlantsModuleOptions & Partial<PlantsModuleMounting> = {},
  ): DynamicModule {
    return super.forRoot(options);
  }
}

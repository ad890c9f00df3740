import { ConfigurableModuleBuilder } from '@nestjs/common';
import type { PlantsModuleOptions } from './plants.options';

export const { ConfigurableModuleClass, MODULE_OPTIONS_TOKEN } =
  new ConfigurableModuleBuilder<PlantsModuleOptions>().setClassMethodName('forRoot').build();

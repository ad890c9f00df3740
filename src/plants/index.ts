export { type AuthOptions, BearerGuard, type Caller, TokenVerifier } from '../auth';
export * from '../errors';
export type { Plant } from './plant';
export { PlantsModule } from './plants.module';
export {
  GUARDED_BY_HOST,
  type PlantsModuleMounting,
  type PlantsModuleOptions,
} from './plants.options';
export { PlantsRepository } from './plants.repository';
export { PlantsService } from './plants.service';

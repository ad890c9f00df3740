import { loadSwagger } from './swagger-decorators';

/** What a host imports: the package's one entry. */
import './supported-node';

export type { AuthOptions, Caller } from '../auth';
export {
  errorCatalogue,
  type ErrorBody,
  type ErrorKind,
  IdempotencyKeyReusedError,
  IdTakenError,
  InvalidIdempotencyKeyError,
  InvalidPlantError,
  OutcomeUnknownError,
  PlantStoreError,
  UnavailableError,
} from '../errors';
export { InMemoryPlantsRepository } from './persistence';
export type { Plant, PlantJson, StoredPlant } from './plant';
export { PlantsModule } from './plants.module';
export {
  GUARDED_BY_HOST,
  type PlantsModuleMounting,
  type PlantsModuleOptions,
  type PostgresOptions,
} from './plants.options';
export { type Insertion, PlantsRepository } from './plants.repository';
export { type CreationOptions, PlantsService } from './plants.service';

/** For the program alone. @internal */
export { exactId } from './exact-id';
export { INT64_MAX, INT64_MIN, parseInt64 } from './int64';
export { findJsonFault } from './json-fault';
export { validateNewPlant } from './new-plant.validation';

// A host may create its OpenAPI document at any time.
loadSwagger();

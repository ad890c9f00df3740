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

// @internal What only the program uses. It may change with any version.
export { collectBytes, declareBytes } from './host/read-body';
export { IDEMPOTENT_REPLAYED } from './idempotency-key';
export { INT64_MAX, INT64_MIN, parseInt64 } from './int64';
export { describeJsonError, exactId } from './json';
export { validateNewPlant } from './new-plant.pipe';
export { StoreOpenError } from './persistence';
export * from './plants.channels';
export { isCreation, SCHEMA_PREFIX } from './plants.options';

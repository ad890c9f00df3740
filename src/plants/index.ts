/** The public API of the package. */
import './errors/supported-node';

export type { AuthOptions } from './auth/auth.options';
export type { Caller } from './http/caller';
export type { HostRequest, RequestNotes } from './http/request';
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
} from './errors/errors';
export { InMemoryPlantsRepository } from './store/in-memory-plants.repository';
export type { CreatedPlant, Plant } from './plant/plant';
export { PlantsModule } from './plants.module';
export type { PlantsModuleExtras, PlantsModuleOptions } from './options/plants.options';
export type { PostgresOptions } from './store/postgres/postgres.options';
export { type InsertOutcome, PlantsRepository } from './plants.repository';
export { type CreatePlantOptions, PlantsService } from './plants.service';

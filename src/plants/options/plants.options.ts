import type { CanActivate, ModuleMetadata, Type } from '@nestjs/common';
import type { AuthOptions } from '../auth/auth.options';
import type { PlantsRepository } from '../plants.repository';
import type { PostgresOptions } from '../store/postgres/postgres.options';

/** The injection token of {@link ResolvedOptions}. */
export const PLANTS_OPTIONS = Symbol('PlantsModule.options');

/**
 * The options that a factory can return. The application fails to start if an option is unknown or undefined,
 * or if two options exclude each other.
 */
export interface PlantsModuleOptions {
  /**
   * The path of the SQLite database file, relative to the working directory. The file and its directory
   * are created if they do not exist.
   * @default 'data/plants.db'; none in production (`NODE_ENV`)
   */
  readonly sqlite?: string;
  /**
   * The PostgreSQL database to use instead of SQLite: a connection URL, a function that returns the current URL
   * (called for each attempt to connect), or client settings of the `pg` driver. The module opens up to 10 sessions,
   * and creates the table if the database has none.
   * @default none: SQLite is used
   */
  readonly postgres?: string | (() => string) | PostgresOptions;
  /**
   * Which bearer tokens are accepted.
   * @default a random token, generated at startup and printed to standard error. In production (`NODE_ENV`)
   * the application fails to start unless `auth` or `guard` is set
   */
  readonly auth?: AuthOptions;
  /**
   * The maximum size of a request body in bytes. A parser of the host has its own limit as well. Without
   * `rawBody: true`, only that limit applies to a body without a `Content-Length`.
   * @default 65536
   */
  readonly bodyLimit?: number;
}

/** The options that `forRootAsync` takes next to `useFactory`, because Nest needs them to wire the module. */
export interface PlantsModuleExtras {
  /**
   * A guard of the host that decides who may create plants, instead of our bearer tokens. `false` if global
   * guards of the host protect the route. Cannot be combined with `auth`.
   * @default bearer tokens
   */
  guard: Type<CanActivate> | false | undefined;
  /**
   * A repository of the host that stores the plants: a provider that one of `imports` exports. Cannot be
   * combined with `sqlite` and `postgres`.
   * @default SQLite or PostgreSQL, according to the other options
   */
  repository: Type<PlantsRepository> | undefined;
  /** Modules that export the dependencies of `guard`, `repository` and a factory. */
  imports: NonNullable<ModuleMetadata['imports']>;
}

/** Defaults that the module and the service share. */
export const DEFAULTS = { sqlite: 'data/plants.db', bodyLimit: 64 * 1024 };

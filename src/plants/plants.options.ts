import type { CanActivate, ModuleMetadata, Type } from '@nestjs/common';
import type { ClientConfig } from 'pg';
import type { AuthOptions } from '../auth';
import type { PlantsRepository } from './plants.repository';

/** The settings of a {@link PlantsModule}, which may come from a factory. */
export interface PlantsModuleOptions {
  /**
   * The file of the SQLite database, relative to the working directory. It and its directory are
   * created when missing.
   *
   * @default 'data/plants.db'
   */
  readonly sqlite?: string | undefined;
  /**
   * A PostgreSQL database to store plants in instead: a connection URL, or client settings of the
   * `pg` driver, for example with a password function, which is called for each new session, a Unix
   * socket as `host`, or an `ssl` object with certificates. `connectionString` may be a URL as above,
   * with several hosts too; settings beside it win over it.
   *
   * The module opens its own sessions and closes them: one commits, a second while a statement is
   * late, further ones read, up to 10 in all. It creates the table when missing.
   *
   * Connecting takes at most `connectionTimeoutMillis`, by default 2000. A creation that outlasts
   * `statement_timeout` or `lock_timeout` is answered 50300; one that outlasts `query_timeout` 50400. `types` and `pipeline` have no effect.
   *
   * @default undefined, which means SQLite
   */
  readonly postgres?: string | ClientConfig | undefined;

  /**
   * Whose bearer tokens are accepted.
   *
   * @default a random token made at the start and logged once; in production (`NODE_ENV`) the host
   * does not start without a word on who may create plants, here or as `guard`
   */
  readonly auth?: AuthOptions | undefined;
}

/** What of a {@link PlantsModule} is settled where it is mounted, `forRootAsync` included. */
export interface PlantsModuleMounting {
  /**
   * Where the operation is, below the host's global prefix and version. Modules mounted twice need
   * different ones.
   *
   * @default 'plants'
   */
  path: string;
  /**
   * Who may create plants, in the host's own words: a guard of the host instead of bearer tokens, or
   * the statement that the host guards the route already.
   *
   * @default bearer tokens
   */
  guard: Type<CanActivate> | typeof GUARDED_BY_HOST | undefined;
  /**
   * The host's own store instead of ours: a provider that `imports` export.
   *
   * @default that of the options, SQLite or PostgreSQL
   */
  repository: Type<PlantsRepository> | undefined;
  /** Modules that export what `guard` and `repository` inject. */
  imports: NonNullable<ModuleMetadata['imports']>;
}

/** Says that a host guards `POST /plants` itself, with a global guard for example. */
export const GUARDED_BY_HOST = 'guarded-by-host';

import type { IncomingMessage } from 'node:http';
import type { CanActivate, ControllerOptions, ModuleMetadata, Type } from '@nestjs/common';
import type { Duplex } from 'node:stream';
import type { ConnectionOptions } from 'node:tls';
import type { AuthOptions } from '../auth';
import type { ErrorKind } from '../errors';
import type { PlantsRepository } from './plants.repository';

/** Where a module is mounted unless its host says otherwise: specification, "Create plant". */
export const PLANTS_PATH = 'plants';

/** Whether a request to the service, with a target in origin form, is a creation: the contract's operation. */
export function isCreation({ method, url }: Pick<IncomingMessage, 'method' | 'url'>): boolean {
  return method === 'POST' && url?.split('?', 1)[0] === `/${PLANTS_PATH}`;
}

/** The injection token of the largest body, in bytes, and its default. */
export const BODY_LIMIT = Symbol('PlantsModule.bodyLimit');
export const DEFAULT_BODY_LIMIT = 2 ** 20;
/** The injection token of the path at which the host has mounted the module. */
export const MOUNTING_PATH = Symbol('PlantsModule.path');

/** The prefix of our schema names in a host's document, where the host may have an `Error` of its own. */
export const SCHEMA_PREFIX = 'PlantStore.';

/** Declares that the host guards `POST /plants` itself, with a global guard for example. */
export const GUARDED_BY_HOST = 'guarded-by-host';

/** The settings that a factory may provide. One that is undefined or unknown stops the start, as do two that exclude each other. */
export interface PlantsModuleOptions {
  /**
   * The file of the SQLite database, relative to the working directory. It and its directory are
   * created when missing.
   * @default 'data/plants.db'; in production (`NODE_ENV`) none
   */
  readonly sqlite?: string;
  /**
   * A PostgreSQL database to store plants in instead, without `sqlite`: a connection URL, or client settings of the
   * `pg` driver, for example with a password function, which is called for each new session, a Unix
   * socket as `host`, or an `ssl` object with certificates. `connectionString` may be a URL as above,
   * with several hosts too; settings beside it win over it.
   *
   * The module opens its own sessions and closes them: one commits, a second while a statement is
   * late, further ones read, up to 10 in all. It creates the table when missing.
   *
   * Connecting takes at most `connectionTimeoutMillis`, by default 2000. A creation that outlasts
   * `statement_timeout` or `lock_timeout` is answered 50300, one that outlasts `query_timeout` 50400.
   * `types` and `pipeline` have no effect.
   *
   * @default none, which means SQLite
   */
  readonly postgres?: string | PostgresOptions;
  /**
   * Which bearer tokens are accepted.
   * @default a random token, made at the start and logged once; in production (`NODE_ENV`) the host
   * does not start unless `auth` or `guard` says who may create plants
   */
  readonly auth?: AuthOptions;
  /**
   * The largest body of a request, in bytes. Limits of the host do not count.
   * @default 1048576
   */
  readonly bodyLimit?: number;
}

/** Client settings of the `pg` driver, whose types a host need not have installed. */
export interface PostgresOptions {
  readonly connectionString?: string;
  readonly host?: string;
  readonly port?: number;
  readonly database?: string;
  readonly user?: string;
  readonly password?: string | (() => string | Promise<string>);
  readonly ssl?: boolean | ConnectionOptions;
  readonly sslnegotiation?: 'postgres' | 'direct';
  readonly enableChannelBinding?: boolean;
  readonly stream?: () => Duplex | undefined;
  readonly keepAlive?: boolean;
  /** Milliseconds, as are the other times. */
  readonly keepAliveInitialDelayMillis?: number;
  readonly connectionTimeoutMillis?: number;
  readonly statement_timeout?: false | number;
  readonly query_timeout?: number;
  readonly lock_timeout?: number;
  readonly idle_in_transaction_session_timeout?: number;
  readonly application_name?: string;
  readonly fallback_application_name?: string;
  readonly client_encoding?: string;
  readonly options?: string;
}

/** The settings that are fixed where the module is mounted, with `forRootAsync` too. */
export interface PlantsModuleMounting {
  /**
   * The path of the operation, below the host's global prefix and version. Two mountings need
   * different paths.
   * @default 'plants'
   */
  path: string;
  /**
   * The version of the operation, for a host with versions: as in `@Controller({ version })`.
   * @default the default version of the host
   */
  version: ControllerOptions['version'];
  /**
   * Errors that the host answers the operation with besides those of the module, because of a global
   * guard that limits rates, for example. They are added to its description in an OpenAPI document.
   * @default none
   */
  hostErrors: readonly ErrorKind[];
  /**
   * A guard of the host that decides who may create plants, instead of our bearer tokens; or
   * {@link GUARDED_BY_HOST} when the host guards the route already. It excludes `auth`.
   * @default bearer tokens
   */
  guard: Type<CanActivate> | typeof GUARDED_BY_HOST | undefined;
  /**
   * The name of the host's security scheme that the operation requires in an OpenAPI document.
   * @default 'bearerAuth' with bearer tokens; none with `guard`
   */
  securityScheme: string | undefined;
  /**
   * A store of the host instead of ours: a provider that one of `imports` exports. It
   * excludes `sqlite` and `postgres`.
   * @default SQLite or PostgreSQL, as the options say
   */
  repository: Type<PlantsRepository> | undefined;
  /** Modules that export what `guard` and `repository` inject. */
  imports: NonNullable<ModuleMetadata['imports']>;
}

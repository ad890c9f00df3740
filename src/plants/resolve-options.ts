import { Logger } from '@nestjs/common';
import { type AuthOptions, validateAuthOptions, withTemporaryToken } from './auth/auth.options';
import { OptionError } from './errors/operator.error';
import { type StoreLocation, type StoreName, STORES } from './store/stores';
import {
  DEFAULTS,
  isProduction,
  type PlantsModuleExtras,
  type PlantsModuleOptions,
  type ResolvedOptions,
} from './plants.options';

/**
 * Checks the options as the host passes them or its factory returns them, and adds defaults.
 *
 * @throws OptionError when an option is missing or cannot be used
 */
export function resolveOptions(
  options: PlantsModuleOptions,
  { repository, guard }: PlantsModuleExtras,
): ResolvedOptions {
  assertSet(options);
  const { auth, bodyLimit = DEFAULTS.bodyLimit } = options;
  const names = Object.keys(STORES) as StoreName[];
  const entries = names.map((name) => [name, options[name]] as const);
  const location = Object.fromEntries(entries.filter(([, value]) => value !== undefined));
  assertAtMostOne({ ...location, repository });
  assertAtMostOne({ auth, guard });
  const [error] = auth ? validateAuthOptions(auth) : [];
  if (error) throw error;
  const hasDefaultStore = Object.keys(location).length === 0;
  const hasDefaultAuth = auth === undefined && guard === undefined;
  const rule = 'must be set in production (NODE_ENV).';
  if (isProduction(process.env) && hasDefaultStore && !repository) {
    throw new OptionError('sqlite', `${names.join(', ')} or repository ${rule}`);
  }
  if (isProduction(process.env) && hasDefaultAuth) {
    throw new OptionError('auth', `auth or guard ${rule}`);
  }
  return {
    bodyLimit,
    auth: hasDefaultAuth ? createTemporaryAuth() : auth,
    store: (hasDefaultStore ? { sqlite: DEFAULTS.sqlite } : location) as StoreLocation,
  };
}

/**
 * Rejects options that are present but not set: a default would silently replace them, which may be another
 * store or weaker protection.
 *
 * @throws OptionError naming the option
 */
export function assertSet(options: object, prefix = ''): void {
  for (const [name, value] of Object.entries(options) as [string, unknown][]) {
    const option = `${prefix}${name}`;
    if (value === undefined || value === null || Number.isNaN(value)) {
      throw new OptionError(option, `${option} is ${String(value)}: set it, or leave it out.`);
    }
    const isGroup = typeof value === 'object' && (option === 'auth' || option in STORES);
    if (isGroup) assertSet(value, `${option}.`);
  }
}

/** @throws OptionError when two options exclude each other: one of them would be ignored */
function assertAtMostOne(options: object): void {
  const [one, other] = Object.entries(options).filter(([, value]) => value !== undefined);
  if (!one || !other) return;
  throw new OptionError(
    one[0],
    `${one[0]} and ${other[0]} exclude each other: set only one of them.`,
  );
}

/** Prints a temporary token to standard error. It is not logged, because logs may be collected and kept. */
function createTemporaryAuth(): AuthOptions {
  const { auth, temporaryToken } = withTemporaryToken({});
  new Logger('PlantsModule').warn(
    'Neither "auth" nor "guard" is set. A temporary token is printed to standard error.',
  );
  process.stderr.write(
    `PlantsModule: this token is valid until shutdown: Bearer ${temporaryToken}\n`,
  );
  return auth;
}

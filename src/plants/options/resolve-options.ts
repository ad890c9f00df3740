import { type AuthOptions, isAuthConfigured, validateAuthOptions } from '../auth/auth.options';
import { generateToken } from '../auth/token-list';
import { OptionError } from '../errors/operator.error';
import { assertNames, AUTH_NAMES, OPTION_NAMES, POSTGRES_NAMES } from './option-names';
import type { StoreKind, StoreLocation, StoreLocations } from '../store/store-location';
import { DEFAULTS, type PlantsModuleExtras, type PlantsModuleOptions } from './plants.options';
import { isProduction } from '../environment';

/** The options of the host, checked and with defaults. */
export interface ResolvedOptions {
  readonly bodyLimit: number;
  /** Unused if a guard of the host protects the route. */
  readonly auth: AuthOptions;
  /** Unused if the host has its own repository. */
  readonly store: StoreLocation;
}

/** The option of each kind of store. */
type OptionalLocations = { readonly [Kind in StoreKind]: StoreLocations[Kind] | undefined };

/**
 * Checks the options as the host passes them or its factory returns them, and adds defaults.
 * @throws OptionError when an option is missing or cannot be used
 */
export function resolveOptions(
  options: PlantsModuleOptions,
  { repository, guard }: PlantsModuleExtras,
): ResolvedOptions {
  // A factory without a return statement is valid JavaScript.
  if (Object(options) !== options) {
    throw new OptionError('options', 'The options must be an object.');
  }
  assertNames(options, OPTION_NAMES);
  const { sqlite, postgres, auth, bodyLimit = DEFAULTS.bodyLimit } = options;
  if (typeof postgres === 'object') assertNames(postgres, POSTGRES_NAMES, 'postgres.');
  if (!Number.isSafeInteger(bodyLimit) || bodyLimit < 1) {
    throw new OptionError('bodyLimit', 'bodyLimit must be a positive integer.');
  }
  const locations: OptionalLocations = { sqlite, postgres };
  assertAtMostOne({ ...locations, repository });
  assertAtMostOne({ auth, guard });
  const store = findLocation(locations);
  if (auth) assertAuth(auth);
  const hasDefaultAuth = auth === undefined && guard === undefined;
  if (isProduction(process.env)) {
    const rule = 'must be set in production (NODE_ENV).';
    if (!store && !repository) {
      const kinds = Object.keys(locations).join(', ');
      throw new OptionError('sqlite', `${kinds} or repository ${rule}`);
    }
    if (hasDefaultAuth) throw new OptionError('auth', `auth or guard ${rule}`);
  }
  return {
    bodyLimit,
    auth: hasDefaultAuth ? createTemporaryAuth() : (auth ?? {}),
    store: store ?? { sqlite: DEFAULTS.sqlite },
  };
}

/** Returns the location that is set. Undefined if none is set. */
function findLocation(locations: OptionalLocations): StoreLocation | undefined {
  const entry = Object.entries(locations).find(([, location]) => location !== undefined);
  // TypeScript does not know which kind the entry belongs to.
  return entry && (Object.fromEntries([entry]) as unknown as StoreLocation);
}

/** @throws OptionError when no token could be accepted, or an option is invalid */
function assertAuth(auth: AuthOptions): void {
  assertNames(auth, AUTH_NAMES, 'auth.');
  const [error] = validateAuthOptions(auth);
  if (error) throw error;
  if (isAuthConfigured(auth)) return;
  throw new OptionError('auth', 'auth must have tokens, tokensFile or issuer.');
}

/** @throws OptionError when two options exclude each other: one of them would be ignored */
function assertAtMostOne(options: Readonly<Record<string, unknown>>): void {
  const [one, other] = Object.keys(options).filter((name) => options[name] !== undefined);
  if (one === undefined || other === undefined) return;
  throw new OptionError(one, `${one} and ${other} exclude each other: set only one of them.`);
}

/** Prints a temporary token to standard error. It is not logged, because logs may be collected and kept. */
function createTemporaryAuth(): AuthOptions {
  const token = generateToken();
  process.stderr.write(
    `PlantsModule: neither auth nor guard is set. This token is valid until shutdown: Bearer ${token}\n`,
  );
  return { tokens: [token] };
}

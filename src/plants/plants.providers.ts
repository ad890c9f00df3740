import { Logger } from '@nestjs/common';
import type { HttpAdapterHost } from '@nestjs/core';
import {
  type AuthOptions,
  isAuthConfigured,
  validateAuthOptions,
  withTemporaryToken,
} from './auth/auth.options';
import { OptionError } from './errors/operator.error';
import * as options from './plants.options';

/**
 * Checks the options as the host passes them or its factory returns them, and adds defaults.
 *
 * @throws OptionError when an option is missing or cannot be used
 */
export function resolveOptions(
  given: options.PlantsModuleOptions,
  { repository, guard }: options.PlantsModuleExtras,
): options.ResolvedOptions {
  options.assertSet(given);
  const { sqlite, postgres, auth, bodyLimit = options.DEFAULTS.bodyLimit } = given;
  options.assertAtMostOne({ sqlite, postgres, repository });
  options.assertAtMostOne({ auth, guard });
  if (auth) assertAuth(auth);
  const isProduction = options.isProduction(process.env);
  if (isProduction && !(sqlite ?? postgres ?? repository)) {
    throw new OptionError(
      'sqlite',
      'sqlite, postgres or repository must be set in production (NODE_ENV).',
    );
  }
  const hasDefaultAuth = auth === undefined && guard === undefined;
  if (isProduction && hasDefaultAuth) {
    throw new OptionError('auth', 'auth or guard must be set in production (NODE_ENV).');
  }
  return {
    bodyLimit,
    auth: hasDefaultAuth ? createTemporaryAuth() : auth,
    store: postgres ? { postgres } : { sqlite: sqlite ?? options.DEFAULTS.sqlite },
  };
}

function assertAuth(auth: AuthOptions): void {
  if (!isAuthConfigured(auth)) {
    throw new OptionError(
      'auth',
      'auth accepts no token: set auth.tokens, auth.tokensFile or auth.issuer.',
    );
  }
  for (const error of validateAuthOptions(auth)) throw error;
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

/** Applications that use the module. Each has exactly one HttpAdapterHost, even without HTTP. */
const applications = new WeakSet<HttpAdapterHost>();

/** @throws Error when an application registers the module twice, which would open two stores */
export function assertRegisteredOnce(application: HttpAdapterHost): void {
  if (applications.has(application)) {
    throw new Error(
      'PlantsModule was registered twice in one application. Write "export const plants = PlantsModule.forRoot({ … })" in one file, and "imports: [plants]" in each module that needs it.',
    );
  }
  applications.add(application);
}

import { Logger } from '@nestjs/common';
import {
  type AuthOptions,
  createTokenVerifier,
  isAuthConfigured,
  makeToken,
  type TokenVerifier,
} from '../auth';
import type { PlantsModuleOptions } from './plants.options';

/**
 * Creates the verifier of the bearer tokens for a {@link PlantsModule} without a guard of the host.
 *
 * @throws Error when the options are invalid, or in production when they accept no token
 */
export function createDefaultVerifier({ auth = {} }: PlantsModuleOptions): TokenVerifier {
  return createTokenVerifier(isAuthConfigured(auth) ? auth : { ...auth, ...randomToken() });
}

function randomToken(): AuthOptions {
  if (process.env.NODE_ENV === 'production') {
    throw new Error(
      'PlantsModule: in production (NODE_ENV), set "auth" or "guard" to say who may create plants.',
    );
  }
  const token = makeToken();
  new Logger('PlantsModule').warn(
    `Neither "auth" nor "guard" is set. This token is valid until shutdown: Bearer ${token}`,
  );
  return { tokens: [token] };
}

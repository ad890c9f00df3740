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
 * Who judges the bearer tokens of a {@link PlantsModule} whose host has no guard of its own.
 *
 * @throws Error when the options say nothing of who may call, in production, or contradict themselves
 */
export function verifierOf({ auth = {} }: PlantsModuleOptions): TokenVerifier {
  return createTokenVerifier(isAuthConfigured(auth) ? auth : { ...auth, ...madeUpToken() });
}

function madeUpToken(): AuthOptions {
  if (process.env.NODE_ENV === 'production') {
    throw new Error('PlantsModule: say who may create plants, by "auth" or "guard".');
  }
  const token = makeToken();
  new Logger('PlantsModule').warn(`No tokens configured; good until the end: Bearer ${token}`);
  return { tokens: [token] };
}

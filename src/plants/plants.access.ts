import { Logger } from '@nestjs/common';
import {
  configuredTokenDigest,
  generateToken,
  StaticTokenVerifier,
  type TokenVerifier,
} from '../auth';
import type { PlantsModuleOptions } from './plants.options';

/**
 * Who judges the bearer tokens of a {@link PlantsModule} whose host has no guard of its own.
 *
 * @throws Error when the options say nothing of who may call, in production, or a token is malformed
 */
export function verifierOf({ tokens = [generatedToken()] }: PlantsModuleOptions): TokenVerifier {
  return new StaticTokenVerifier(
    tokens.map((token, at) => {
      const digest = configuredTokenDigest(token);
      if (digest) return digest;
      throw new Error(
        `PlantsModule: tokens[${at}] is neither a bearer token nor sha256:HEX of one.`,
      );
    }),
  );
}

function generatedToken(): string {
  if (process.env.NODE_ENV === 'production') {
    throw new Error('PlantsModule: say who may create plants, by "tokens" or "guard".');
  }
  const token = generateToken();
  new Logger('PlantsModule').warn(`No tokens configured; good until the end: Bearer ${token}`);
  return token;
}

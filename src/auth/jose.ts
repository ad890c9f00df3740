import type * as jose from 'jose';

/** The library for JWTs. */
export type Jose = typeof jose;

/**
 * Loads the library for JWTs. Hosts without an issuer do without it: some run in test runners that
 * cannot load ES modules.
 */
export function loadJose(): Promise<Jose> {
  return import('jose');
}

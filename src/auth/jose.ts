import type * as jose from 'jose';

/** The library for JWTs. */
export type Jose = typeof jose;

/**
 * Loads the library for JWTs. Only whoever trusts an issuer installs it; besides, some hosts run in test
 * runners that cannot load ES modules.
 *
 * @throws Error naming the command that installs it
 */
export async function loadJose(): Promise<Jose> {
  try {
    return await import('jose');
  } catch (cause) {
    if (!/^(?:ERR_)?MODULE_NOT_FOUND$/.test(String((cause as NodeJS.ErrnoException).code))) {
      throw cause;
    }
    throw new Error('An issuer of JWTs needs a library: npm install jose', { cause });
  }
}

import type * as jose from 'jose';

/**
 * Loads the library for JWTs. Only hosts that trust an issuer install it, and some hosts run in test runners that
 * cannot load ES modules.
 */
export async function loadJose(): Promise<typeof jose> {
  try {
    return await import('jose');
  } catch (cause) {
    const { code = '' } = cause as NodeJS.ErrnoException;
    if (!/^(?:ERR_)?MODULE_NOT_FOUND$/.test(code)) throw cause;
    throw new Error('An issuer of JWTs requires a library. Run: npm install jose', { cause });
  }
}

import { X509Certificate } from 'node:crypto';
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { Logger } from '@nestjs/common';
import { JwtVerifier } from '../plants/auth/jwt.verifier';
import { TokenVerifier } from '../plants/auth/token-verifier';
import { matchKind } from '../plants/store/store-location';
import { print } from './print';
import { checkSqlite, describeSqlite } from './sqlite.maintenance';
import { formatForOperator, readEnvironment, type TlsFiles } from '../server/settings/environment';
import { findValidityError, readTls } from '../server/http/tls';

/** Checks the settings, the store, the tokens, the keys of the issuer and the certificate. Prints no secrets. */
export async function check({ deep: isDeep }: { deep?: true }): Promise<void> {
  const ignore = (): void => undefined;
  const warn = (text: string): void => {
    console.error(text);
  };
  // Errors are thrown too, and become the lines of the checks.
  Logger.overrideLogger({ log: ignore, error: ignore, warn });
  const { auth, tls, database } = readEnvironment(process.env);
  const { issuer, audience } = auth;
  // Each check returns a description of what it found, or throws.
  const checks = {
    settings: () => 'all variables are valid',
    store: () =>
      matchKind<string | Promise<string>>(database, {
        sqlite: (path) => {
          const file = resolve(path);
          if (isDeep && existsSync(file)) checkSqlite(file);
          return describeSqlite(file);
        },
        postgres: async (location) => {
          // Loads the PostgreSQL driver only if it is used.
          const { describePostgres } = await import('./postgres.maintenance.js');
          return describePostgres(location);
        },
      }),
    tokens: () => {
      if (new TokenVerifier(auth).isFileEmpty()) {
        throw new Error('AUTH_TOKENS_FILE has no token that is valid now');
      }
      return 'all tokens can be used';
    },
    issuer:
      issuer !== undefined &&
      audience !== undefined &&
      (async () => {
        const problems = await new JwtVerifier({ ...auth, issuer, audience }).refreshKeys();
        if (problems.length > 0) throw new Error(problems.join('; '));
        return `the keys of ${[issuer].flat().join(' and ')} were fetched`;
      }),
    TLS: tls && (() => describeCertificate(tls)),
  };
  for (const [name, run] of Object.entries(checks)) {
    if (!run) continue;
    let line: string;
    try {
      line = `ok      ${name}: ${await run()}`;
    } catch (error) {
      process.exitCode = 1;
      const shown = formatForOperator(error);
      line = `FAILED  ${name}: ${shown instanceof Error ? shown.message : String(shown)}`;
    }
    print(line);
  }
}

/** @throws Error when the service would not start, or a client would reject the certificate because of its dates */
function describeCertificate(files: TlsFiles): string {
  const { cert } = readTls(files).current;
  const error = findValidityError(cert);
  if (error !== undefined) throw new Error(error);
  const first = new X509Certificate(cert);
  if (!first.checkIssued(first) && cert.toString().split('-----BEGIN CERTIFICATE-').length === 2) {
    console.error(
      `TLS_CERT lacks the certificate of its issuer (${first.issuer.replaceAll('\n', ', ')}). Clients that do not have it reject the connection: append the intermediate certificates.`,
    );
  }
  return 'the certificate and its key are valid and match';
}

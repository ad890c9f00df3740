import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { Logger } from '@nestjs/common';
import type { Command } from 'commander';
import { parseTokenFile } from '../plants/auth/token-list';
import { checkIssuerKeys, TokenVerifier } from '../plants/auth/token-verifier';
import { OperatorError } from '../plants/errors/operator.error';
import { checkSqlite, describeSqlite } from './sqlite.maintenance';
import {
  formatForOperator,
  readEnvironment,
  type Settings,
  type TlsFiles,
} from '../server/settings/environment';
import { findValidityError, readTls } from '../server/edge/tls';
import { print } from './print';

export function addCheck(program: Command): void {
  program
    .command('check')
    .summary('check the settings, the store and the tokens')
    .description(
      'Checks the environment variables, the store and its schema, the tokens, the keys of the issuer and the certificate. Prints no secrets.',
    )
    .option('--deep', 'also read the whole SQLite file, and check that it is not damaged')
    .action(({ deep }: { deep?: true }) => check(deep));
}

async function check(isDeep = false): Promise<void> {
  Logger.overrideLogger(false);
  const { auth, tls, database } = readEnvironment(process.env);
  const { issuer, jwksUrl } = auth;
  // Each check returns a description of what it found, or throws.
  const checks = {
    settings: () => 'all variables are valid',
    store: async () => {
      if ('sqlite' in database) return describeSqlite(resolve(database.sqlite));
      // Loads the PostgreSQL driver only if it is used.
      const { describePostgres } = await import('./postgres.maintenance.js');
      return describePostgres(database.postgres);
    },
    plants:
      isDeep &&
      'sqlite' in database &&
      existsSync(database.sqlite) &&
      (async () => {
        await checkSqlite(resolve(database.sqlite));
        return 'integrity check passed';
      }),
    tokens: () => describeTokens(auth),
    issuer:
      issuer !== undefined &&
      (async () => {
        await checkIssuerKeys(issuer, jwksUrl);
        return `the keys of ${issuer} were fetched`;
      }),
    TLS: tls && (() => describeCertificate(tls)),
  };
  let failures = 0;
  for (const [name, run] of Object.entries(checks)) {
    try {
      if (run) print(`ok      ${name}: ${await run()}\n`);
    } catch (error) {
      failures++;
      const shown = formatForOperator(error);
      print(`FAILED  ${name}: ${shown instanceof Error ? shown.message : String(shown)}\n`);
    }
  }
  if (failures > 0) {
    throw new OperatorError(failures === 1 ? 'One check failed.' : `${failures} checks failed.`);
  }
}

function describeTokens({ tokens = [], tokensFile, issuer }: Settings['auth']): string {
  const parts = tokens.length > 0 ? [`${tokens.length} in AUTH_TOKENS`] : [];
  if (tokensFile !== undefined) {
    // Throws if the service would reject the file.
    new TokenVerifier({ tokensFile });
    const listed = parseTokenFile(readFileSync(tokensFile));
    const expired = listed.filter(({ expires }) => expires <= Date.now()).length;
    parts.push(`${listed.length} in ${tokensFile}, ${expired} of them expired`);
  }
  if (parts.length > 0) return parts.join('; ');
  return issuer === undefined
    ? 'none set; the service will generate one at startup'
    : 'none listed; the service accepts JWTs from AUTH_ISSUER';
}

/** @throws Error when the service would not start, or a client would reject the certificate because of its dates */
function describeCertificate(files: TlsFiles): string {
  const error = findValidityError(readTls(files).current.cert);
  if (error !== undefined) throw new OperatorError(error);
  return 'the certificate and its key are valid and match';
}

import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { Logger } from '@nestjs/common';
import type { Command } from 'commander';
import { parseTokenFile } from '../plants/auth/token-file';
import { checkIssuerKeys, TokenVerifier } from '../plants/auth/token-verifier';
import { OperatorError } from '../plants/errors/operator.error';
import { checkSqlite, describeSqlite } from './sqlite.maintenance';
import { formatForOperator, readEnvironment, type Settings } from '../server/settings/environment';
import { readTls } from '../server/edge/tls';
import { withInterrupts } from './interrupt';
import { urlInShell } from './store';

const DEEP_CHECK_HINT =
  '--deep checks only SQLite files. To check PostgreSQL for damage, run as a superuser:\n  pg_amcheck --install-missing --table=plants ';

export function addCheck(program: Command): void {
  program
    .command('check')
    .summary('check the settings, the store and the tokens')
    .description(
      'Checks the environment variables, the store and its schema, the tokens, the keys of the issuer and the certificate. Prints no secrets.',
    )
    .option('--deep', 'also read the whole SQLite file, and check that it is not damaged')
    .action(({ deep }: { deep?: true }) => withInterrupts((signal) => check(deep, signal)));
}

async function check(isDeep = false, signal: AbortSignal): Promise<void> {
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
    plants: isDeep && 'sqlite' in database && (() => checkPlants(resolve(database.sqlite), signal)),
    tokens: () => describeTokens(auth),
    issuer:
      issuer !== undefined &&
      (async () => {
        await checkIssuerKeys(issuer, jwksUrl);
        return `the keys of ${issuer} were fetched`;
      }),
    TLS:
      tls &&
      (() => {
        readTls(tls);
        return 'the certificate and its key are valid and match';
      }),
  };
  let failures = 0;
  for (const [name, run] of Object.entries(checks)) {
    try {
      if (run) console.log(`ok      ${name}: ${await run()}`);
    } catch (error) {
      signal.throwIfAborted();
      failures++;
      const shown = formatForOperator(error);
      console.log(`FAILED  ${name}: ${shown instanceof Error ? shown.message : String(shown)}`);
    }
  }
  if (isDeep && 'postgres' in database) console.error(DEEP_CHECK_HINT + urlInShell());
  if (failures > 0) {
    throw new OperatorError(failures === 1 ? 'One check failed.' : `${failures} checks failed.`);
  }
}

async function checkPlants(file: string, signal: AbortSignal): Promise<string> {
  if (!existsSync(file)) return 'no database file yet';
  await checkSqlite(file, signal);
  return 'integrity check passed';
}

function describeTokens({ tokens = [], tokensFile, issuer }: Settings['auth']): string {
  const parts = tokens.length > 0 ? [`${tokens.length} in AUTH_TOKENS`] : [];
  if (tokensFile !== undefined) {
    // Throws if the service would reject the file.
    new TokenVerifier({ tokensFile });
    const listed = parseTokenFile(readFileSync(tokensFile));
    const expired = listed.filter(({ expires = Infinity }) => expires <= Date.now()).length;
    parts.push(`${listed.length} in ${tokensFile}, ${expired} of them expired`);
  }
  if (parts.length > 0) return parts.join('; ');
  return issuer === undefined
    ? 'none set; the service will generate one at startup'
    : 'none listed; the service accepts JWTs from AUTH_ISSUER';
}

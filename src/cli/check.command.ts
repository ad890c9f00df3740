import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { Logger } from '@nestjs/common';
import type { Command } from 'commander';
import type { Settings } from '../server/environment';
import {
  assertKeysOfIssuer,
  createTokenVerifier,
  OperatorError,
  parseTokenFile,
  PostgresPlantsRepository,
  SCHEMA_VERSION,
} from '../plants/program';
import { withInterrupts } from './interrupt';
import { readEnvironment } from '../server/environment';
import { checkSqlite, readVersion } from './sqlite.maintenance';
import { sqliteFile } from './store';
import { describeForOperator } from '../server/operator-message';
import { readTls } from '../server/tls';

export function addCheck(program: Command): void {
  program
    .command('check')
    .summary('check the settings, the store and the tokens')
    .description(
      'Checks the environment variables, the store and its schema, the tokens, the keys of the issuer and the certificate. Prints no secret.',
    )
    .option('--deep', 'also read all of a SQLite file, and check that it is not damaged')
    .action(({ deep: isDeep = false }: { deep?: boolean }) =>
      withInterrupts((signal) => check(isDeep, signal)),
    );
}

async function check(isDeep: boolean, signal: AbortSignal): Promise<void> {
  Logger.overrideLogger(false);
  let failures = 0;
  async function report(what: string, find: () => string | Promise<string>): Promise<void> {
    try {
      console.log(`ok      ${what}: ${await find()}`);
    } catch (error) {
      signal.throwIfAborted();
      failures++;
      const shown = describeForOperator(error);
      console.log(`FAILED  ${what}: ${shown instanceof Error ? shown.message : String(shown)}`);
    }
  }

  const { auth, tls, database } = readEnvironment(process.env);
  console.log('ok      settings: all variables are valid');
  await report('store', () => describeStore(database));
  if (isDeep) await report('plants', () => describePlants(signal));
  await report('tokens', () => describeTokens(auth));
  const { issuer, jwksUrl } = auth;
  if (issuer !== undefined) {
    await report('issuer', async () => {
      await assertKeysOfIssuer(issuer, jwksUrl);
      return `the keys of ${issuer} were fetched`;
    });
  }
  if (tls) {
    await report('TLS', () => {
      readTls(tls);
      return 'the certificate and its key are valid and match';
    });
  }
  if (failures > 0) {
    throw new OperatorError(failures === 1 ? 'One check failed.' : `${failures} checks failed.`);
  }
}

/** @throws Error saying why the service cannot use the store */
async function describeStore(where: Settings['database']): Promise<string> {
  if ('postgres' in where) {
    return PostgresPlantsRepository.look(where.postgres);
  }
  const file = resolve(where.sqlite);
  if (!existsSync(file)) return `SQLite file ${file}, which the service will create`;
  const version = readVersion(file);
  const isOld = version < SCHEMA_VERSION;
  const plan = isOld ? `, which the service will migrate to ${SCHEMA_VERSION}` : '';
  return `SQLite file ${file}, schema version ${version}${plan}`;
}

/** @throws OperatorError when the file is damaged */
async function describePlants(signal: AbortSignal): Promise<string> {
  const file = sqliteFile('pg_amcheck --install-missing --table=plants "$DATABASE_URL"');
  if (!existsSync(file)) return 'there are none';
  await checkSqlite(file, signal);
  return 'the integrity check found no fault';
}

function describeTokens({ tokens = [], tokensFile, issuer }: Settings['auth']): string {
  const parts = tokens.length > 0 ? [`${tokens.length} in AUTH_TOKENS`] : [];
  if (tokensFile !== undefined) {
    // Refuses what the service refuses.
    createTokenVerifier({ tokensFile });
    const listed = parseTokenFile(readFileSync(tokensFile));
    const expired = listed.filter(({ expires = Infinity }) => expires <= Date.now()).length;
    parts.push(`${listed.length} in ${tokensFile}, ${expired} of them expired`);
  }
  if (parts.length > 0) return parts.join('; ');
  return issuer === undefined
    ? 'none set; the service will make one at its start'
    : 'none listed; the service accepts JWTs of AUTH_ISSUER';
}

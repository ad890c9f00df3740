import { readFileSync } from 'node:fs';
import { Logger } from '@nestjs/common';
import type { Command } from 'commander';
import type { Settings } from '../config';
import { OperatorError } from '../errors';
import { withInterrupts } from './interrupt';

export function addCheck(program: Command): void {
  program
    .command('check')
    .summary('check the settings, the store and the tokens')
    .description(
      'Checks the environment variables, the store and its schema, the tokens, the keys of the issuer and the certificate. Prints no secret and changes nothing.',
    )
    .option('--deep', 'also read all stored plants')
    .addHelpText('after', '\nExample:\n  plant-store check --deep')
    .action(({ deep: isDeep = false }: { deep?: boolean }) =>
      withInterrupts((signal) => check(isDeep, signal)),
    );
}

async function check(isDeep: boolean, signal: AbortSignal): Promise<void> {
  const { assertKeysOfIssuer } = await import('../auth/index.js');
  const { readEnvironment } = await import('../config/index.js');
  const { describeStore, readStore } = await import('../data/index.js');
  const { readTls } = await import('../server/index.js');
  Logger.overrideLogger(false);
  let failures = 0;
  async function report(what: string, find: () => string | Promise<string>): Promise<void> {
    try {
      console.log(`ok      ${what}: ${await find()}`);
    } catch (error) {
      signal.throwIfAborted();
      failures++;
      console.log(`FAILED  ${what}: ${(error as Error).message}`);
    }
  }

  let settings: Settings | undefined;
  await report('settings', () => {
    settings = readEnvironment(process.env);
    return 'all variables are valid';
  });
  if (settings !== undefined) {
    const { auth, tls, database } = settings;
    await report('store', () => describeStore(database));
    if (isDeep) await report('plants', () => readStore(database, signal));
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
  }
  if (failures > 0) {
    throw new OperatorError(failures === 1 ? 'One check failed.' : `${failures} checks failed.`);
  }
}

async function describeTokens(auth: Settings['auth']): Promise<string> {
  const { tokens = [], tokensFile, issuer } = auth;
  const { parseTokenFile } = await import('../auth/index.js');
  const parts = tokens.length > 0 ? [`${tokens.length} in AUTH_TOKENS`] : [];
  if (tokensFile !== undefined) {
    const now = Date.now();
    const listed = parseTokenFile(readFileSync(tokensFile));
    const expired = listed.filter(({ expires = Infinity }) => expires <= now).length;
    parts.push(`${listed.length} in ${tokensFile}, ${expired} of them expired`);
  }
  if (parts.length === 0) {
    return issuer === undefined
      ? 'none set; the service will make one at its start'
      : 'none listed; the service accepts JWTs of AUTH_ISSUER';
  }
  return parts.join('; ');
}

import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { Logger } from '@nestjs/common';
import { parseTokenFile } from '../auth';
import { IssuerKeys } from '../auth/standalone';
import { readEnvironment, type Settings } from '../config';
import { checkSqlite, describeSqlite, openArchive } from '../plants/archives';
import { readTls } from '../server';

/** How the check goes. */
export interface CheckOptions {
  /** Whether all stored plants are read. */
  readonly deep?: boolean;
}

/** Checks the settings and everything they refer to, and prints the result of each check. */
export async function check({ deep = false }: CheckOptions, signal: AbortSignal): Promise<void> {
  Logger.overrideLogger(false);
  let failures = 0;
  async function judge(what: string, find: () => string | Promise<string>): Promise<void> {
    try {
      console.log(`ok      ${what}: ${await find()}`);
    } catch (error) {
      signal.throwIfAborted();
      failures++;
      console.log(`FAILED  ${what}: ${(error as Error).message}`);
    }
  }

  let settings: Settings | undefined;
  await judge('settings', () => {
    settings = readEnvironment(process.env);
    return 'all variables are valid';
  });
  if (settings !== undefined) {
    const { auth, tls, database } = settings;
    if ('sqlite' in database) {
      const file = resolve(database.sqlite);
      await judge('store', () => describeFile(file));
      if (deep && existsSync(file)) {
        await judge('plants', async () => {
          await checkSqlite(file, signal);
          return 'the integrity check found no fault';
        });
      }
    } else {
      await judge('store', () => describeDatabase(database));
      if (deep) await judge('plants', () => readAll(database, signal));
    }
    await judge('tokens', () => describeTokens(auth));
    if (auth.issuer !== undefined)
      await judge('issuer', () => fetchKeys(auth.issuer ?? '', auth.jwksUrl));
    if (tls) {
      await judge('TLS', () => {
        readTls(tls);
        return 'the certificate and its key are valid and match';
      });
    }
  }
  if (failures > 0)
    throw new Error(failures === 1 ? 'One check failed.' : `${failures} checks failed.`);
}

function describeFile(file: string): string {
  if (!existsSync(file)) return `SQLite file ${file}, which the service will create`;
  const { version, newest, hasPlants } = describeSqlite(file);
  if (version > newest) {
    throw new Error(
      `${file} has schema version ${version}, but this program supports only up to ${newest}: run a newer version of the program`,
    );
  }
  if (version > 0 && !hasPlants) throw new Error(`${file} has no table plants`);
  const state = version === newest ? '' : `, which the service will migrate to ${newest}`;
  return `SQLite file ${file}, schema version ${version}${state}`;
}

async function describeDatabase(database: Settings['database']): Promise<string> {
  const archive = await openArchive(database, 'read');
  await archive.close();
  return 'PostgreSQL database, which accepts writes and has the table plants';
}

async function readAll(database: Settings['database'], signal: AbortSignal): Promise<string> {
  const archive = await openArchive(database, 'read');
  let count = 0;
  try {
    for await (const page of archive.lines()) {
      signal.throwIfAborted();
      count += page.count;
    }
  } finally {
    await archive.close();
  }
  return `${count} were read`;
}

function describeTokens({ tokens = [], tokensFile, issuer }: Settings['auth']): string {
  const parts = tokens.length > 0 ? [`${tokens.length} in AUTH_TOKENS`] : [];
  if (tokensFile !== undefined) {
    const now = Date.now();
    const listed = parseTokenFile(readFileSync(tokensFile));
    const expired = listed.filter(({ expires = Infinity }) => expires <= now).length;
    parts.push(`${listed.length} in ${tokensFile}, ${expired} of them expired`);
  }
  if (parts.length === 0) {
    parts.push(
      issuer === undefined
        ? 'none set; the service will make one at its start'
        : 'none listed; the service accepts JWTs of AUTH_ISSUER',
    );
  }
  return parts.join('; ');
}

async function fetchKeys(issuer: string, jwksUrl: string | undefined): Promise<string> {
  const keys = new IssuerKeys(issuer, jwksUrl);
  try {
    await keys.fetchLatest();
  } catch (error) {
    throw (error as Error).cause ?? error;
  } finally {
    keys.onApplicationShutdown();
  }
  return `the keys of ${issuer} were fetched`;
}

import { constants, existsSync, mkdirSync, rmSync } from 'node:fs';
import { copyFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { readDatabase } from '../config/database';
import { checkSqlite, replaceSqlite } from '../plants/archives';
import { sync } from './sync';
import { UsageError } from './usage.error';

/** Puts a backup in the place of the store, which nobody may have open. */
export async function restore(path: string, signal: AbortSignal): Promise<void> {
  const store = readDatabase(process.env);
  if ('postgres' in store) {
    throw new UsageError(
      `A PostgreSQL database is restored with its own program:\n  pg_restore --clean --if-exists --single-transaction --dbname="$DATABASE_URL" ${path}`,
    );
  }
  const file = resolve(store.sqlite);
  const draft = `${file}.${process.pid}.part`;
  const kept = `${file}.before-${new Date().toISOString().replaceAll(/\D/g, '').slice(0, 14)}`;
  if (existsSync(`${path}-wal`)) {
    throw new UsageError(`${path} is in use, or was not copied with "plant-store backup".`);
  }
  mkdirSync(dirname(file), { recursive: true });
  let isReplaced;
  try {
    // Checked is what is used: the copy.
    await copyFile(path, draft, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
    await checkSqlite(draft, signal);
    await sync(draft);
    isReplaced = replaceSqlite(draft, file, kept);
  } finally {
    for (const left of [draft, `${draft}-wal`, `${draft}-shm`]) rmSync(left, { force: true });
  }
  if (process.platform !== 'win32') await sync(dirname(file));
  console.error(`Restored ${file} from ${resolve(path)}.`);
  if (isReplaced) console.error(`What was there before is ${kept}.`);
}

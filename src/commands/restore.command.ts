import { constants, existsSync, mkdirSync, rmSync } from 'node:fs';
import { copyFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { readDatabase } from '../config/database';
import { checkSqlite, replaceSqlite } from '../plants/archives';
import { sync } from './sync';
import { UsageError } from './usage.error';

/** Replaces the store, which no process may have open, with a copy of a backup. */
export async function restore(path: string, signal: AbortSignal): Promise<void> {
  const store = readDatabase(process.env);
  if ('postgres' in store) {
    throw new UsageError(
      `This command restores SQLite files only. To restore PostgreSQL, run:\n  pg_restore --clean --if-exists --single-transaction --dbname="$DATABASE_URL" ${path}`,
    );
  }
  const file = resolve(store.sqlite);
  const draft = `${file}.${process.pid}.part`;
  const kept = findFree(
    `${file}.before-${new Date().toISOString().replaceAll(/\D/g, '').slice(0, 14)}`,
  );
  if (existsSync(`${path}-wal`)) {
    throw new UsageError(
      `${path} has a write-ahead log beside it, so it is in use or incomplete. Restore a file that "plant-store backup" has made.`,
    );
  }
  mkdirSync(dirname(file), { recursive: true });
  let isReplaced;
  try {
    // The copy is checked, because the copy is what is used.
    await copyFile(path, draft, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
    await checkSqlite(draft, signal);
    await sync(draft);
    isReplaced = replaceSqlite(draft, file, kept);
  } finally {
    for (const left of [draft, `${draft}-wal`, `${draft}-shm`]) rmSync(left, { force: true });
  }
  if (process.platform !== 'win32') await sync(dirname(file));
  console.error(`Restored ${file} from ${resolve(path)}.`);
  if (isReplaced) console.error(`The old file is now ${kept}.`);
}

/** The name, or that with a number when another restore of this second has taken it. */
function findFree(name: string): string {
  let free = name;
  for (let number = 2; existsSync(free); number++) free = `${name}-${number}`;
  return free;
}

import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { readDatabase } from '../config/database';
import { checkSqlite, copySqlite } from '../plants/archives';
import { NewFile } from './new-file';
import { Progress } from './progress';
import { UsageError } from './usage.error';

/** Milliseconds between two looks at the size of a file. */
const LOOK_INTERVAL = 200;

/** Copies the store to a file, while the service may run. */
export async function backUp(path: string, signal: AbortSignal): Promise<void> {
  const store = readDatabase(process.env);
  if ('postgres' in store) {
    throw new UsageError(
      `This command copies SQLite files only. To back up PostgreSQL, run:\n  pg_dump --format=custom --file=${path} "$DATABASE_URL"`,
    );
  }
  const source = resolve(store.sqlite);
  const size = statSync(source).size;
  const file = new NewFile(path);
  await (await file.create()).close();
  const progress = new Progress('MiB');
  const timer = setInterval(() => {
    const copied = statSync(file.draft, { throwIfNoEntry: false })?.size ?? 0;
    progress.show(copied / 2 ** 20, copied / size);
  }, LOOK_INTERVAL);
  try {
    await copySqlite(source, file.draft, signal);
    await checkSqlite(file.draft, signal);
    await file.finish();
  } catch (error) {
    file.discard();
    throw error;
  } finally {
    clearInterval(timer);
    progress.clear();
  }
  console.error(`Backed up ${source} to ${resolve(path)}.`);
}

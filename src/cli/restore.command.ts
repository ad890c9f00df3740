import * as fs from 'node:fs';
import { dirname, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import type { Command } from 'commander';
import { OperatorError, UsageError } from '../plants/errors/operator.error';
import { isBusy } from '../plants/persistence/sqlite/sqlite.errors';
import { assertUsableFile, makeDirectory } from '../plants/persistence/sqlite/sqlite.files';
import { requireFile, writeNewFile } from './new-file';
import { checkSqlite } from './sqlite.maintenance';
import { requireSqlitePath } from './store';

const BACKUP_ADVICE = 'Pass a file created by "plant-store backup".';

export function addRestore(program: Command): void {
  program
    .command('restore')
    .summary('replace the store with a backup')
    .description(
      'Checks a backup, and replaces the SQLite file at DATABASE_URL with a copy of it. Stop the service first. The old file is kept under another name. For PostgreSQL, use pg_restore.',
    )
    .argument('<file>', 'the backup to restore')
    .action(restore);
}

async function restore(backup: string): Promise<void> {
  const file = requireSqlitePath();
  requireFile(backup, BACKUP_ADVICE);
  if (fs.realpathSync(backup) === file || fs.existsSync(`${backup}-wal`)) {
    throw new UsageError(`${backup} is a store in use or an incomplete copy. ${BACKUP_ADVICE}`);
  }
  makeDirectory(dirname(file));
  const former = `${file}.before-${new Date().toISOString().replaceAll(/\D/g, '')}`;
  const copy = async (draft: string): Promise<void> => {
    await fs.promises.copyFile(backup, draft, fs.constants.COPYFILE_FICLONE);
    setAccess(draft, file);
    // Check the copy, not the original, because the service will use the copy.
    await checkSqlite(draft, backup);
  };
  await writeNewFile(file, copy, (draft) => {
    replace(file, draft, former);
  });
  console.error(`Restored ${file} from ${resolve(backup)}.`);
  if (fs.existsSync(former)) console.error(`The old file is now ${former}.`);
}

/** Gives a draft the mode and owner of the file that it replaces; if there is none, mode 0600 and the directory's owner. */
function setAccess(draft: string, file: string): void {
  const isNew = !fs.existsSync(file);
  const { uid, gid, mode } = fs.statSync(isNew ? dirname(file) : file);
  fs.chmodSync(draft, isNew ? 0o600 : mode & 0o666);
  // Only root may give a new file to another user.
  if (!isNew || process.getuid?.() === 0) fs.chownSync(draft, uid, gid);
}

/**
 * Atomically replaces a database file that no other process has open.
 *
 * @throws OperatorError when the file is in use, or is not a database; then it is unchanged
 */
function replace(file: string, draft: string, former: string): void {
  let lock: DatabaseSync | undefined;
  try {
    assertUsableFile(file);
    if (fs.existsSync(file)) {
      // Fails for another kind of file. A connection that can write would delete the write-ahead log next to it.
      // `immutable` makes SQLite ignore the log, take no locks and create no files.
      const location = new URL('?immutable=1', pathToFileURL(file));
      const reader = new DatabaseSync(location, { readOnly: true });
      reader.exec('PRAGMA schema_version');
      reader.close();
      lock = new DatabaseSync(file, { timeout: 1000 });
      // This empties and deletes the write-ahead log. It fails while another connection is open.
      lock.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = DELETE');
      lock.exec('BEGIN EXCLUSIVE');
      fs.linkSync(file, former);
    }
    fs.renameSync(draft, file);
  } catch (cause) {
    const problem = isBusy(cause)
      ? 'is in use: stop the service first'
      : `cannot be replaced: ${(cause as Error).message}. Move it and its write-ahead log (-wal) away, and run the command again`;
    throw new OperatorError(`${file} ${problem}.`, { cause });
  } finally {
    lock?.close();
  }
}

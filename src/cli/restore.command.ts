import { constants, existsSync, lstatSync, realpathSync, statSync } from 'node:fs';
import { chmod, chown, copyFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import type { Command } from 'commander';
import { OperatorError, UsageError } from '../plants/errors/operator.error';
import { makeDirectory } from '../plants/persistence/sqlite/sqlite.files';
import { checkSqlite, replaceSqlite } from './sqlite.maintenance';
import { withInterrupts } from './interrupt';
import { requireFile, writeDraft } from './new-file';
import { requireSqlitePath, urlInShell } from './store';

const BACKUP_ADVICE = 'Pass a file created by "plant-store backup".';

export function addRestore(program: Command): void {
  program
    .command('restore')
    .summary('replace the store with a backup')
    .description(
      'Checks a backup, and replaces the SQLite file at DATABASE_URL with a copy of it. Stop the service first. The old file is kept under another name. For PostgreSQL, prints the command to use instead.',
    )
    .argument('<file>', 'the backup to restore')
    .action((file: string) => withInterrupts((signal) => restore(file, signal)));
}

async function restore(path: string, signal: AbortSignal): Promise<void> {
  const file = requireSqlitePath(
    `pg_restore --clean --if-exists --single-transaction --dbname=${urlInShell()} ${path}`,
  );
  requireFile(path, BACKUP_ADVICE);
  if (realpathSync(path) === file) {
    throw new UsageError(`${path} is the store itself. ${BACKUP_ADVICE}`);
  }
  if (existsSync(`${path}-wal`)) {
    throw new UsageError(
      `${path} has a write-ahead log next to it, so it is in use or incomplete. ${BACKUP_ADVICE}`,
    );
  }
  if (!existsSync(file) && lstatSync(file, { throwIfNoEntry: false })) {
    throw new OperatorError(`${file} is a symbolic link to a file that does not exist.`);
  }
  makeDirectory(dirname(file));
  const former = `${file}.before-${new Date().toISOString().replaceAll(/\D/g, '')}`;
  const copy = async (draft: string): Promise<void> => {
    await copyFile(path, draft, constants.COPYFILE_FICLONE);
    await copyAccess(existsSync(file) ? file : dirname(file), draft);
    // Check the copy, not the original, because the service will use the copy.
    await checkSqlite(draft, signal, path);
  };
  await writeDraft(file, copy, (draft) => replaceSqlite(draft, file, former));
  console.error(`Restored ${file} from ${resolve(path)}.`);
  if (existsSync(former)) console.error(`The old file is now ${former}.`);
}

/**
 * Gives a new file the owner and the mode of another file or of a directory. A restored store must belong to
 * the user of the service, even if root ran this command.
 */
async function copyAccess(from: string, to: string): Promise<void> {
  const { uid, gid, mode } = statSync(from);
  await chown(to, uid, gid);
  await chmod(to, mode & 0o666);
}

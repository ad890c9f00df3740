import { constants, existsSync, lstatSync, realpathSync, statSync } from 'node:fs';
import { chmod, chown, copyFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import type { Command } from 'commander';
import { OperatorError, UsageError } from '../plants/errors/operator.error';
import { makeDirectory } from '../plants/persistence/sqlite/sqlite.files';
import { checkSqlite, replaceSqlite } from './sqlite.maintenance';
import { withInterrupts } from './interrupt';
import { sizeOf, writeDraft } from './new-file';
import { sqliteFile, urlInShell } from './store';

const BACKUP_ADVICE = 'Name a file that "plant-store backup" has made.';

export function addRestore(program: Command): void {
  program
    .command('restore')
    .summary('replace the store with a backup')
    .description(
      'Checks a backup, and replaces the SQLite file that DATABASE_URL names with a copy of it. Stop the service first. The old file is kept under another name. For PostgreSQL it prints the command to use.',
    )
    .argument('<file>', 'the backup')
    .action((file: string) => withInterrupts((signal) => restore(file, signal)));
}

async function restore(path: string, signal: AbortSignal): Promise<void> {
  const file = sqliteFile(
    `pg_restore --clean --if-exists --single-transaction --dbname=${urlInShell()} ${path}`,
  );
  sizeOf(path, BACKUP_ADVICE);
  if (realpathSync(path) === file) {
    throw new UsageError(`${path} is the store itself. ${BACKUP_ADVICE}`);
  }
  if (existsSync(`${path}-wal`)) {
    throw new UsageError(
      `${path} has a write-ahead log beside it, so it is in use or incomplete. ${BACKUP_ADVICE}`,
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
    // The copy is checked, because the copy is what is used.
    await checkSqlite(draft, signal, path);
  };
  await writeDraft(file, copy, (draft) => replaceSqlite(draft, file, former));
  console.error(`Restored ${file} from ${resolve(path)}.`);
  if (existsSync(former)) console.error(`The old file is now ${former}.`);
}

/**
 * Gives a new file the owner and the mode of another one or of a directory: a restored store belongs to
 * the user of the service, and not to root, who may have run this command.
 */
async function copyAccess(from: string, to: string): Promise<void> {
  const { uid, gid, mode } = statSync(from);
  await chown(to, uid, gid);
  await chmod(to, mode & 0o666);
}

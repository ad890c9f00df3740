import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { UsageError } from '../errors';
import { withInterrupts } from './interrupt';
import { NewFile, sizeOf } from './new-file';
import { Progress } from './progress';

export function addBackup(program: Command): void {
  program
    .command('backup')
    .summary('copy the store to a file')
    .description(
      'Copies the SQLite file that DATABASE_URL names, with all plants stored so far, and checks the copy. The service may run meanwhile. For PostgreSQL it prints the command to use.',
    )
    .argument('<file>', 'the copy, which must not exist')
    .addHelpText('after', '\nExample:\n  plant-store backup /backups/plants-monday.db')
    .action((file: string) => withInterrupts((signal) => backUp(file, signal)));
}

async function backUp(path: string, signal: AbortSignal): Promise<void> {
  const { readDatabase } = await import('../config/index.js');
  const { checkSqlite, copySqlite } = await import('../data/index.js');
  const store = readDatabase(process.env);
  if ('postgres' in store) {
    throw new UsageError(
      `This command copies SQLite files only. To back up PostgreSQL, run:\n  pg_dump --format=custom --file=${path} "$DATABASE_URL"`,
    );
  }
  const source = resolve(store.sqlite);
  const size = sizeOf(source, 'Set DATABASE_URL to the store to copy.');
  const file = new NewFile(path);
  await (await file.create()).close();
  const progress = new Progress('MiB');
  const timer = setInterval(() => {
    const copied = statSync(file.draft, { throwIfNoEntry: false })?.size ?? 0;
    progress.show(copied / 2 ** 20, copied / size);
  }, 200);
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

import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { checkSqlite, copySqlite } from './sqlite.maintenance';
import { databaseVariableName } from '../server/settings/database.settings';
import { withInterrupts } from './interrupt';
import { requireFile, writeNewFile } from './new-file';
import { Progress } from './progress';
import { requireSqlitePath, urlInShell } from './store';

export function addBackup(program: Command): void {
  program
    .command('backup')
    .summary('copy the store to a file')
    .description(
      'Copies the SQLite file at DATABASE_URL, with all plants stored so far, and checks the copy. The service can keep running. For PostgreSQL, prints the command to use instead.',
    )
    .argument('<file>', 'the file to create; it must not exist')
    .action((file: string) => withInterrupts((signal) => backUp(file, signal)));
}

async function backUp(path: string, signal: AbortSignal): Promise<void> {
  const source = requireSqlitePath(`pg_dump --format=custom --file=${path} ${urlInShell()}`);
  const size = requireFile(
    source,
    `Set ${databaseVariableName(process.env)} to the store to copy.`,
  );
  await writeNewFile(path, async (draft) => {
    const progress = new Progress('MiB');
    const timer = setInterval(() => {
      const { size: copied } = statSync(draft);
      progress.show(copied / 2 ** 20, copied / size);
    }, 200);
    try {
      await copySqlite(source, draft, signal);
      await checkSqlite(draft, signal);
    } finally {
      clearInterval(timer);
      progress.clear();
    }
  });
  console.error(`Backed up ${source} to ${resolve(path)}.`);
}

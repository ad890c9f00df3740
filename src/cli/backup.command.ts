import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { requireFile, writeNewFile } from './new-file';
import { Progress } from './progress';
import { checkSqlite, copySqlite } from './sqlite.maintenance';
import { requireSqlitePath, STORE_ADVICE } from './store';

export function addBackup(program: Command): void {
  program
    .command('backup')
    .summary('copy the store to a file')
    .description(
      'Copies the SQLite file at DATABASE_URL, with all plants stored so far, and checks the copy. The service can keep running. For PostgreSQL, use pg_dump.',
    )
    .argument('<file>', 'the file to create; it must not exist')
    .action(backUp);
}

async function backUp(path: string): Promise<void> {
  const source = requireSqlitePath();
  const size = requireFile(source, STORE_ADVICE);
  const progress = new Progress('MiB');
  await writeNewFile(path, async (draft) => {
    const timer = setInterval(() => {
      const copied = statSync(draft).size;
      progress.show(copied / 2 ** 20, copied / size);
    }, 200);
    try {
      await copySqlite(source, draft);
      await checkSqlite(draft);
    } finally {
      clearInterval(timer);
    }
  });
  progress.print(`Backed up ${source} to ${resolve(path)}.`);
}

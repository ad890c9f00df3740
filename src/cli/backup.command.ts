import { resolve } from 'node:path';
import { requireFile, writeNewFile } from './new-file';
import { copySqlite } from './sqlite.maintenance';
import { requireSqlitePath, STORE_ADVICE } from './configured-store';

/** Copies the SQLite file of the store to a new file, and checks the copy. The service can keep running. */
export async function backUp(path: string): Promise<void> {
  const source = requireSqlitePath();
  requireFile(source, STORE_ADVICE);
  await writeNewFile(path, (draft) => copySqlite({ from: source, to: draft, isBackup: false }));
  console.error(`Backed up ${source} to ${resolve(path)}.`);
}

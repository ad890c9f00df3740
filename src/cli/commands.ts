import type { Command } from 'commander';
import { addBackup } from './backup.command';
import { addCheck } from './check.command';
import { addExport } from './export.command';
import { addHealth } from './health.command';
import { addImport } from './import.command';
import { addRestore } from './restore.command';
import { addServe } from './serve.command';
import { addTokenCreate } from './token-create.command';

export { UsageError } from '../plants/program';
export { describeForOperator } from '../server/settings/environment';

/** Adds all commands, in the order of the help. */
export function addCommands(program: Command): void {
  addServe(program);
  addExport(program);
  addImport(program);
  addBackup(program);
  addRestore(program);
  addCheck(program);
  addHealth(program);
  addTokenCreate(program);
}

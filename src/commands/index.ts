import { Command } from 'commander';
import { packageVersion } from '../package-version';
import { addBackup } from './backup.command';
import { addCheck } from './check.command';
import { addExport } from './export.command';
import { addHealth } from './health.command';
import { addImport } from './import.command';
import { addRestore } from './restore.command';
import { addServe } from './serve.command';
import { addTokenCreate } from './token-create.command';

/** The `plant-store` program with all its commands. Each loads what it runs on when it is called. */
export function createProgram(): Command {
  const program = new Command('plant-store')
    .description('Takes plant records over HTTP and stores them exactly and durably.')
    .version(packageVersion(), '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .helpCommand(false)
    .exitOverride()
    .showHelpAfterError('(use --help to see the valid commands and options)');
  // The default command would count the name of an unknown one as an argument too many.
  program.hook('preSubcommand', ({ args: [name = '-'] }, command) => {
    if (name.startsWith('-') || name === command.name()) return;
    program.error(`error: unknown command '${name}'`);
  });
  addServe(program);
  addExport(program);
  addImport(program);
  addBackup(program);
  addRestore(program);
  addCheck(program);
  addHealth(program);
  addTokenCreate(program);
  return program;
}

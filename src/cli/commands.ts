import { Command, CommanderError } from 'commander';
import { UsageError } from '../plants/errors/operator.error';
import { formatForOperator } from '../server/settings/environment';
import { packageVersion } from '../server/settings/versions';
import { addBackup } from './backup.command';
import { addCheck } from './check.command';
import { addExport } from './export.command';
import { addHealth } from './health.command';
import { addImport } from './import.command';
import { addRestore } from './restore.command';
import { addServe } from './serve.command';
import { addTokenCreate } from './token-create.command';

/** Runs a command line of the Plant Store. Exit codes: 0 success, 1 failure, 2 invalid usage. */
export async function runCommand([...args]: readonly string[]): Promise<void> {
  // Does not use commander's default command, which would treat an unknown command name as an argument.
  if (/^--(?!help$|version$)/.test(args[0] ?? '--')) args.unshift('serve');
  try {
    await createProgram().parseAsync(args, { from: 'user' });
  } catch (error) {
    // Exits, because an interrupted statement may still be waiting for its response.
    process.exit(report(error));
  }
}

/** Prints why a command ended, and returns the exit code for it. */
function report(error: unknown): number {
  // commander has printed its message. It also throws after printing the help or the version.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
  // The reader of the output has closed the pipe.
  if ((error as { code?: unknown }).code === 'EPIPE') return 1;
  console.error(formatForOperator(error));
  return error instanceof UsageError ? 2 : 1;
}

function createProgram(): Command {
  const program = new Command('plant-store')
    .description('Accepts plant records over HTTP and stores them exactly and durably.')
    .version(packageVersion(), '-v, --version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .helpCommand('help [command]', 'print the help of a command')
    .exitOverride()
    .showHelpAfterError('(use --help to see the valid commands and options)');
  // The help lists the commands in this order.
  addServe(program);
  addExport(program);
  addImport(program);
  addBackup(program);
  addRestore(program);
  addCheck(program);
  addHealth(program);
  addTokenCreate(program);
  program.commands.flatMap((each) => [each, ...each.commands]).forEach(rejectRepeatedOptions);
  return program;
}

/** Rejects repeated options, because commander would silently use the last value. Variadic options may be repeated. */
function rejectRepeatedOptions(command: Command): void {
  for (const option of command.options.filter(({ variadic }) => !variadic)) {
    let isGiven = false;
    command.on(`option:${option.name()}`, () => {
      if (isGiven) command.error(`error: option '${option.flags}' was given more than once`);
      isGiven = true;
    });
  }
}

import { Command, CommanderError } from 'commander';
import { UsageError } from '../plants/errors/operator.error';
import { describeForOperator } from '../server/settings/environment';
import { packageVersion } from '../server/settings/versions';
import { addBackup } from './backup.command';
import { addCheck } from './check.command';
import { addExport } from './export.command';
import { addHealth } from './health.command';
import { addImport } from './import.command';
import { addRestore } from './restore.command';
import { addServe } from './serve.command';
import { addTokenCreate } from './token-create.command';

/** The command line of the Plant Store. Ends with 0, with 1 when a command failed, 2 when it was misused. */
export async function runCommand([...args]: readonly string[]): Promise<void> {
  // Not commander's default command, which would take the name of an unknown one for an argument.
  if (/^--(?!help$|version$)/.test(args[0] ?? '--')) args.unshift('serve');
  try {
    await createProgram().parseAsync(args, { from: 'user' });
  } catch (error) {
    // A statement that was interrupted may still be waiting for its answer.
    process.exit(report(error));
  }
}

/** Prints why a command ended, and returns the exit code for it. */
function report(error: unknown): number {
  // The parser has printed its message. Help and the version are no errors.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
  // The reader of the output has closed the pipe.
  if ((error as { code?: unknown }).code === 'EPIPE') return 1;
  console.error(describeForOperator(error));
  return error instanceof UsageError ? 2 : 1;
}

function createProgram(): Command {
  const program = new Command('plant-store')
    .description('Takes plant records over HTTP and stores them exactly and durably.')
    .version(packageVersion(), '-v, --version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .helpCommand('help [command]', 'print the help of a command')
    .exitOverride()
    .showHelpAfterError('(use --help to see the valid commands and options)');
  // In the order of the help.
  addServe(program);
  addExport(program);
  addImport(program);
  addBackup(program);
  addRestore(program);
  addCheck(program);
  addHealth(program);
  addTokenCreate(program);
  program.commands.flatMap((each) => [each, ...each.commands]).forEach(refuseRepeatedOptions);
  return program;
}

/** The parser would silently take the last. An option that collects its values may be repeated. */
function refuseRepeatedOptions(command: Command): void {
  for (const option of command.options.filter(({ variadic }) => !variadic)) {
    let isGiven = false;
    command.on(`option:${option.name()}`, () => {
      if (isGiven) command.error(`error: option '${option.flags}' is given twice`);
      isGiven = true;
    });
  }
}

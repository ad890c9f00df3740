import { Command, CommanderError } from 'commander';
import { UsageError } from '../plants/errors/operator.error';
import { addEnvFile } from '../server/settings/env-file';
import { formatForOperator } from '../server/settings/environment';
import { packageVersion } from '../server/settings/versions';
import { addBackup } from './backup.command';
import { addCheck } from './check.command';
import { addExport } from './export.command';
import { addHealth } from './health.command';
import { addImport } from './import.command';
import { print } from './print';
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
    .configureOutput({ writeOut: print })
    .exitOverride()
    .showHelpAfterError('(use --help to see the valid commands and options)')
    .hook('preAction', (_program, command) => {
      // The service ends by itself, after it has responded to all requests.
      if (command.name() !== 'serve') endOnSignals();
    });
  // The help lists the commands in this order.
  addServe(program);
  addExport(program);
  addImport(program);
  addBackup(program);
  addRestore(program);
  addCheck(program);
  addHealth(program);
  addTokenCreate(program);
  for (const command of program.commands) addEnvFileOption(command.commands[0] ?? command);
  return program;
}

function addEnvFileOption(command: Command): void {
  command.option(
    '--env-file <file>',
    'read variables from a file; existing environment variables take precedence',
    // Commander would ignore all but the last of several files.
    (file) => {
      addEnvFile(file, process.env);
    },
  );
}

/** Ends the process as a signal does by default, but also if it is process 1, as in a container. */
function endOnSignals(): void {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      // This is at once, while `exit` waits for a statement of SQLite that is running.
      process.kill(process.pid, signal);
      process.exit(1);
    });
  }
}

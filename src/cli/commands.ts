import { Command, CommanderError, Option } from 'commander';
import { scopeNames, SCOPES } from '../plants/auth/scopes';
import { formatForOperator } from '../server/settings/environment';
import { addSettingsFile } from '../server/settings/settings-file';
import { version } from '../server/process/versions';
import { backUp } from './backup.command';
import { check } from './check.command';
import { exportTo } from './export.command';
import { checkHealth } from './health.command';
import { print } from './print';
import { restore } from './restore.command';
import { createAndPrintToken, parseExpiry, parseName } from './token-create.command';
import { UsageError } from './usage.error';

/** Runs a command line of the Plant Store. Exit codes: 0 success, 1 failure, 2 invalid usage. */
export async function runCommand(args: readonly string[]): Promise<void> {
  try {
    const program = createProgram();
    assertCommandExists(program, args);
    await program.parseAsync(args, { from: 'user' });
  } catch (error) {
    // commander has printed its message. It also throws after printing the help or the version.
    if (error instanceof CommanderError) {
      // Behind an option, commander takes the command for an argument of the default command.
      const isCommandLate = error.code === 'commander.excessArguments' && args[0]?.startsWith('-');
      if (isCommandLate) console.error('Write the command before its options.');
      process.exit(error.exitCode === 0 ? 0 : 2);
    }
    // Otherwise the reader of the output has closed the pipe.
    if ((error as { code?: unknown }).code !== 'EPIPE') console.error(formatForOperator(error));
    process.exit(error instanceof UsageError ? 2 : 1);
  }
}

/**
 * Prints the names of the commands if the first argument, or that after `token`, is another word. Commander would pass
 * the word to the default command, which takes no arguments.
 * @throws CommanderError for an unknown command
 */
function assertCommandExists(parent: Command, [name, ...others]: readonly string[]): void {
  if (name === undefined || name === 'help' || name.startsWith('-')) return;
  const command = parent.commands.find((each) => each.name() === name);
  if (command === undefined) {
    const names = parent.commands.map((each) => each.name()).join(', ');
    parent.error(`error: unknown command '${name}'. The commands are: ${names}.`);
  } else if (command.commands.length > 0) {
    assertCommandExists(command, others);
  }
}

/** Creates the commands and their options. */
export function createProgram(): Command {
  const program = new Command('plant-store')
    .description('Accepts plant records over HTTP and stores them exactly and durably.')
    .version(version, '-v, --version', 'print the version')
    .configureOutput({
      // Unlike commander's own output, this fails if it cannot be written.
      writeOut: (text) => {
        print(text.trimEnd());
      },
    })
    .exitOverride()
    .showHelpAfterError('(use --help to see the valid commands and options)');
  // The help lists the commands in this order.
  program
    .command('serve', { isDefault: true })
    .description('run the service; this is the default command')
    .action(async () => {
      await import('../main.js');
    });
  addDataCommands(program);
  program
    .command('check')
    .description('check the settings, the store, the tokens, the issuer and the certificate')
    .option('--deep', 'also read the whole SQLite file, and check that it is not damaged')
    .action(check);
  program
    .command('health')
    .description('check whether the service at HOST and HEALTH_PORT or PORT is live')
    .option('--ready', 'check whether it is ready, that is, whether it commits plants in time')
    .action(({ ready }: { ready?: true }) => checkHealth(ready ? 'ready' : 'live'));
  const permissions = Object.values(SCOPES).map(({ description }) => description);
  const scopeHelp = `what the token may do: ${permissions.join(', ')} (default: all)`;
  const token = program.command('token').description('create tokens');
  token
    .command('create')
    .description('create a token, print it, and append its digest to a token file')
    .option('--name <name>', 'the name of the caller that uses the token', parseName)
    .option('--expires <duration>', 'how long the token is valid, such as 12h or 90d', parseExpiry)
    .addOption(new Option('--scope <scope...>', scopeHelp).choices(scopeNames))
    .option('--file <path>', 'the token file (default: AUTH_TOKENS_FILE)')
    .action(createAndPrintToken);
  for (const command of program.commands) {
    // Not `--env-file`: Node.js would read that itself. Commander would ignore all but the last of several files.
    const add = (file: string): void => {
      addSettingsFile(file, process.env);
    };
    const text = 'read variables from a file; existing environment variables take precedence';
    (command.commands[0] ?? command).option('--settings <file>', text, add);
  }
  return program;
}

function addDataCommands(program: Command): void {
  program
    .command('export')
    .description('write all plants to a file, as JSON Lines')
    .argument('[file]', 'the file to create, which must not exist (default: standard output)')
    .action(exportTo);
  program
    .command('import')
    .description('store the plants of a JSON Lines file, except those already stored')
    .argument('[file]', 'the file to read (default: standard input)')
    .action(async (file?: string) => {
      // The validation of plants takes longer to load than all other commands together.
      const { importFile } = await import('./import.command.js');
      await importFile(file);
    });
  program
    .command('backup')
    .description('copy a SQLite store to a file; the service can keep running')
    .argument('<file>', 'the file to create; it must not exist')
    .action(backUp);
  program
    .command('restore')
    .description('replace a SQLite store with a backup; stop the service first')
    .argument('<file>', 'the backup to restore')
    .action(restore);
}

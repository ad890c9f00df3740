#!/usr/bin/env node
import { packageVersion } from '../server/settings/versions';
import { Command, CommanderError } from 'commander';
import { addHealth } from './health.command';

/** The command line of the Plant Store. Ends with 0, with 1 when a command failed, 2 when it was misused. */
async function main([...args]: readonly string[]): Promise<void> {
  const [first = '--'] = args;
  // Not commander's default command, which would take the name of an unknown one for an argument.
  if (/^--(?!help$|version$)/.test(first)) args.unshift('serve');
  try {
    // A container asks for its health again and again: that command loads nothing of the others.
    const add = first === 'health' ? addHealth : (await import('./commands.js')).addCommands;
    await createProgram(add).parseAsync(args, { from: 'user' });
  } catch (error) {
    // A statement that was interrupted may still be waiting for its answer.
    process.exit(await report(error));
  }
}

/** Prints why a command ended, and returns the exit code for it. */
async function report(error: unknown): Promise<number> {
  // The parser has printed its message. Help and the version are no errors.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
  // The reader of the output has closed the pipe.
  if ((error as { code?: unknown }).code === 'EPIPE') return 1;
  const { describeForOperator, UsageError } = await import('./commands.js');
  console.error(describeForOperator(error));
  return error instanceof UsageError ? 2 : 1;
}

function createProgram(add: (program: Command) => void): Command {
  const program = new Command('plant-store')
    .description('Takes plant records over HTTP and stores them exactly and durably.')
    .version(packageVersion(), '-v, --version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .helpCommand('help [command]', 'print the help of a command')
    .exitOverride()
    .showHelpAfterError('(use --help to see the valid commands and options)');
  add(program);
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

void main(process.argv.slice(2));

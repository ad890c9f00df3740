#!/usr/bin/env node
import './node-version';
import { commands, UsageError } from './commands';

/** The command line of the Plant Store. */
async function main(args: string[]): Promise<void> {
  if (args.includes('--help') || args.includes('-h')) {
    console.log(usage());
    return;
  }
  const command =
    args.length === 0
      ? commands[0]
      : commands.find(({ words }) => words.every((word, at) => word === args[at]));
  if (command === undefined) throw new UsageError(usage());
  await command.run(args.slice(command.words.length), process.env);
}

function usage(): string {
  const lines = commands.map(
    ({ synopsis, summary }) => `  plant-store ${synopsis}\n      ${summary}`,
  );
  return `Usage:\n${lines.join('\n')}`;
}

main(process.argv.slice(2)).catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
});

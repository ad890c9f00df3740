import { createReadStream } from 'node:fs';
import { addAbortSignal } from 'node:stream';
import { setTimeout } from 'node:timers/promises';
import type { Command } from 'commander';
import { UsageError } from '../plants/errors/operator.error';
import { readEnvironment } from '../server/settings/environment';
import { PlantsImport } from './import-plants';
import { withInterrupts } from './interrupt';
import { sizeOf } from './new-file';
import { Progress } from './progress';
import { withRepository } from './store';

export function addImport(program: Command): void {
  program
    .command('import')
    .summary('store the plants of a file')
    .description(
      'Stores the plants of a file of JSON Lines in the store that DATABASE_URL names, by the rules of POST /plants. A plant that is already stored counts as present, so you can resume an interrupted import by running it again. The service may run meanwhile.',
    )
    .argument('[file]', 'the file to read; default: the standard input')
    .action((file?: string) => withInterrupts((signal) => importFile(file, signal)));
}

/** @param file undefined or `-` for the standard input */
async function importFile(file = '-', signal: AbortSignal): Promise<void> {
  const isPiped = file === '-';
  if (isPiped && process.stdin.isTTY) {
    throw new UsageError('Name the file to import, or pipe it to the standard input.');
  }
  const advice = 'Name a file, or pipe it to the standard input.';
  const size = isPiped ? undefined : sizeOf(file, advice, true);
  const { bodyLimit } = readEnvironment({ ...process.env, NODE_ENV: undefined });
  const progress = new Progress('plants');
  await withRepository('create', async (repository) => {
    const input = addAbortSignal(signal, isPiped ? process.stdin : createReadStream(file));
    const plants = new PlantsImport(
      repository,
      bodyLimit,
      progress.print.bind(progress),
      (milliseconds) => setTimeout(milliseconds, undefined, { signal }),
    );
    const { counts } = plants;
    try {
      for await (const done of plants.run(input)) {
        signal.throwIfAborted();
        progress.show(done, size && input.bytesRead / size);
      }
    } finally {
      input.destroy();
      const { stored, present, conflicting, invalid } = counts;
      progress.print(
        `Stored ${stored}, already present ${present}, conflicting ${conflicting}, invalid ${invalid}.`,
      );
    }
    if (counts.conflicting + counts.invalid > 0) process.exitCode = 1;
  });
}

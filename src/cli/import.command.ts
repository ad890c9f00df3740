import { createReadStream, statSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import type { Command } from 'commander';
import { UsageError } from '../plants/errors/operator.error';
import { Progress } from './progress';
import { withRepository } from './store';

export function addImport(program: Command): void {
  program
    .command('import')
    .summary('store the plants in a file')
    .description(
      'Stores the plants of a JSON Lines file in the store at DATABASE_URL, by the rules of POST /plants. Skips plants that are already stored, so you can rerun an interrupted import. The service can keep running.',
    )
    .argument('[file]', 'the file to read (default: standard input)')
    .action(importFile);
}

/** @param file undefined or `-` for standard input */
async function importFile(file = '-'): Promise<void> {
  const isPiped = file === '-';
  if (isPiped && process.stdin.isTTY) {
    throw new UsageError('Pass a file, or pipe one to standard input.');
  }
  const size = isPiped ? undefined : statSync(file).size;
  const progress = new Progress('plants');
  // Loaded only here, because the validation of plants takes most of the time in which a command starts.
  const { PlantsImport } = await import('./import-plants.js');
  await withRepository('create', async (repository) => {
    const input = isPiped ? process.stdin : createReadStream(file);
    const report = progress.print.bind(progress);
    const plants = new PlantsImport(repository, report, setTimeout);
    const { counts } = plants;
    try {
      for await (const done of plants.run(input)) {
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

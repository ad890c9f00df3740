import { createWriteStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import type { Command } from 'commander';
import { contentOf, type Plant } from '../plants/plant';
import { pagesOf } from '../plants/plants.repository';
import { withInterrupts } from './interrupt';
import { writeNewFile } from './new-file';
import { Progress } from './progress';
import { withRepository } from './store';

export function addExport(program: Command): void {
  program
    .command('export')
    .summary('write all plants to a file')
    .description(
      'Writes all plants of the store that DATABASE_URL names as JSON Lines, in the order of their ids. The service may run meanwhile.',
    )
    .argument('[file]', 'the file to write, which must not exist; default: the standard output')
    .action((file?: string) => withInterrupts((signal) => exportTo(file, signal)));
}

/** @param file undefined or `-` for the standard output */
async function exportTo(file = '-', signal: AbortSignal): Promise<void> {
  const progress = new Progress('plants');
  // On a terminal, the progress would stand among the plants.
  const isShown = file !== '-' || !process.stdout.isTTY;
  let count = 0;
  const write = (target: NodeJS.WritableStream): Promise<void> =>
    withRepository('exists', async (repository) => {
      async function* lines(): AsyncGenerator<string> {
        for await (const plants of pagesOf(repository)) {
          yield plants.map(toLine).join('');
          count += plants.length;
          if (isShown) progress.show(count);
        }
      }
      await pipeline(lines, target, { signal, end: file !== '-' }).finally(() => {
        progress.clear();
      });
    });
  if (file === '-') await write(process.stdout);
  else await writeNewFile(file, (draft) => write(createWriteStream(draft)));
  console.error(`Exported ${count} ${count === 1 ? 'plant' : 'plants'}.`);
}

/** An id beyond 2^53 is no number of JavaScript. */
function toLine(plant: Plant): string {
  return `{"id":${plant.id},${JSON.stringify(contentOf(plant)).slice(1)}\n`;
}

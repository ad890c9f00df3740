import { createWriteStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { contentOf, type Plant } from '../plants/plant/plant';
import { writeNewFile } from './new-file';
import { withPages } from './configured-store';

/**
 * Writes all plants of the store as JSON Lines, in the order of their ids.
 * @param file undefined or `-` for standard output
 */
export async function exportTo(file = '-'): Promise<void> {
  let count = 0;
  const write = (target: NodeJS.WritableStream): Promise<void> =>
    withPages(async (pages) => {
      async function* lines(): AsyncGenerator<string> {
        for await (const plants of pages) {
          yield plants.map(toLine).join('');
          count += plants.length;
        }
      }
      await pipeline(lines, target, { end: file !== '-' });
    });
  if (file === '-') await write(process.stdout);
  else await writeNewFile(file, (draft) => write(createWriteStream(draft, { flush: true })));
  console.error(`Exported ${count} ${count === 1 ? 'plant' : 'plants'}.`);
}

/** Formats a plant as a line of JSON. Writes the id itself, because JSON.stringify cannot write a bigint. */
function toLine(plant: Plant): string {
  return `{"id":${plant.id},${JSON.stringify(contentOf(plant)).slice(1)}\n`;
}

import { accessSync, createReadStream } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { withRepository } from './configured-store';

/**
 * Stores the plants of a JSON Lines file.
 *
 * @param file undefined or `-` for standard input
 */
export async function importFile(file = '-'): Promise<void> {
  const isPiped = file === '-';
  if (!isPiped) accessSync(file);
  // Loaded only here, because the validation of plants takes most of the time in which a command starts.
  const { PlantsImport } = await import('./import-plants.js');
  await withRepository('create', async (repository) => {
    const input = isPiped ? process.stdin : createReadStream(file);
    const plants = new PlantsImport(repository, console.error, setTimeout);
    const { counts } = plants;
    try {
      await plants.run(input);
    } finally {
      input.destroy();
      const { stored, present, conflicting, invalid } = counts;
      console.error(
        `Stored ${stored}, already present ${present}, conflicting ${conflicting}, invalid ${invalid}.`,
      );
    }
    if (counts.conflicting + counts.invalid > 0) process.exitCode = 1;
  });
}

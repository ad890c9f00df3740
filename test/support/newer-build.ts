import { appendFileSync, copyFileSync, cpSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import type { Migration } from '../../src/plants/store/migrations';
import { makeFolder } from './folder';

const ROOT = join(__dirname, '../..');

/**
 * Copies the build and adds the property `soil` and a migration: a service of the next version.
 *
 * @returns the path of the CLI of the copy
 */
export function createNewerBuild(migration: Migration): string {
  const folder = makeFolder();
  cpSync(join(ROOT, 'dist'), join(folder, 'dist'), { recursive: true });
  copyFileSync(join(ROOT, 'package.json'), join(folder, 'package.json'));
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  const append = (file: string, line: string): void => {
    appendFileSync(join(folder, 'dist/plants', file), `\n${line}\n`);
  };
  append('store/migrations.js', `exports.MIGRATIONS.push(${JSON.stringify(migration)});`);
  append(
    'plant/plant.js',
    "for (const list of [exports.CONTENT_PROPERTIES, exports.PLANT_COLUMNS]) list.push('soil');",
  );
  return join(folder, 'dist/cli/plant-store.js');
}

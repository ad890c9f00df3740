import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Creates a temporary folder with a unique name. */
export function makeFolder(parent = tmpdir()): string {
  return mkdtempSync(join(parent, 'plant-store-'));
}

export function removeFolder(folder: string): void {
  rmSync(folder, { recursive: true, force: true });
}

/** Returns a folder that is empty at the start of each test of the calling file or `describe`. */
export function useFolder(): string {
  const folder = makeFolder();
  beforeEach(() => {
    mkdirSync(folder, { recursive: true });
  });
  afterEach(() => {
    removeFolder(folder);
  });
  return folder;
}

import { writeFileSync } from 'node:fs';

const STANDARD_OUTPUT = 1;

/**
 * Writes a line to standard output. `console.log` ignores a full disk and a closed pipe, so a command would succeed
 * without its output.
 * @throws Error when the line cannot be written
 */
export function print(line: string): void {
  writeFileSync(STANDARD_OUTPUT, `${line}\n`);
}

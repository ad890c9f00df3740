import { writeFileSync } from 'node:fs';

/** Prints to standard output, and exits with code 1 if that fails. `console.log` would ignore the failure. */
export function print(text: string): void {
  try {
    writeFileSync(1, text);
  } catch (error) {
    console.error(`The output cannot be written: ${(error as Error).message}.`);
    process.exit(1);
  }
}

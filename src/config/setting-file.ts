import { readFileSync } from 'node:fs';
import { getSystemErrorMessage } from 'node:util';

/**
 * Reads a text file.
 *
 * @throws Error when it cannot be read. The message has the reason, but not the path, which may be a
 *   secret given to the wrong variable.
 */
export function readSettingFile(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    const { errno, message } = error as NodeJS.ErrnoException;
    const reason = errno === undefined ? message : getSystemErrorMessage(errno);
    throw new Error(`cannot be read: ${reason}`, { cause: error });
  }
}

import * as fs from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { OperatorError } from '../plants/errors/operator.error';
import { syncDirectory } from '../plants/store/sqlite/sqlite.files';

/**
 * Writes a file that appears under its name only after it is complete and synced. Until then it is a hidden file,
 * the draft. It is removed when writing fails. If the process is killed, the next call for the same file removes it.
 *
 * @param write called with the path of the draft, an empty file in the same directory
 * @param replace called with the path of the complete draft, to rename it. By default, the name must be free
 * @throws OperatorError when the file already exists
 */
export async function writeNewFile(
  path: string,
  write: (draft: string) => Promise<void> | void,
  replace?: (draft: string) => void,
): Promise<void> {
  const file = resolve(path);
  if (!replace && fs.existsSync(file)) {
    throw new OperatorError(`${file} already exists. Choose another file name.`);
  }
  const draft = join(dirname(file), `.${basename(file)}.part`);
  removeDraft(draft);
  const descriptor = fs.openSync(draft, 'wx', 0o600);
  try {
    await write(draft);
    fs.fsyncSync(descriptor);
    if (fs.fstatSync(descriptor).nlink === 0) {
      throw new OperatorError(`Another command has begun to write ${file}.`);
    }
    // A link, unlike a rename, never replaces a file that has appeared in the meantime.
    if (replace) replace(draft);
    else fs.linkSync(draft, file);
  } finally {
    // If another command has removed this draft, the file of that name is the draft of the other command.
    if (fs.fstatSync(descriptor).nlink > 0) removeDraft(draft);
    fs.closeSync(descriptor);
  }
  syncDirectory(dirname(file));
}

function removeDraft(draft: string): void {
  // SQLite may leave a journal next to the draft.
  for (const suffix of ['', '-journal']) fs.rmSync(draft + suffix, { force: true });
}

/**
 * Checks that a file that a command reads exists.
 *
 * @param advice what to do if the file cannot be read, as a sentence
 * @throws OperatorError when the file does not exist or is not a regular file
 */
export function requireFile(path: string, advice: string): void {
  const status = fs.statSync(path, { throwIfNoEntry: false });
  if (!status) throw new OperatorError(`${path} does not exist. ${advice}`);
  if (!status.isFile()) throw new OperatorError(`${path} is not a regular file. ${advice}`);
}

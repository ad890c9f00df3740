import { readFileSync, statSync } from 'node:fs';
import { getSystemErrorMessage } from 'node:util';
import { OperatorError } from '../../plants/errors/operator.error';

/** A value is read as it is written, in quotation marks or not. Without them, white space before # would be unclear. */
const LINE = /^(?:export +)?([A-Za-z_]\w*)=(?:(["'`])((?:(?!\2).)*)\2|((?!["'`])(?:(?!\s#).)*))$/;

/**
 * Adds the variables of a file to an environment, except those that are set there, even to an empty string.
 * @throws OperatorError when the file cannot be read, or has a line other than NAME=VALUE or a # comment
 */
export function addSettingsFile(file: string, environment: NodeJS.ProcessEnv): void {
  const lines = readSettingFile(file, `--settings ${file}`).split(/\r?\n/);
  for (const [index, line] of lines.entries()) {
    if (/^\s*(?:#|$)/.test(line)) continue;
    const [, name, , quoted, plain] = LINE.exec(line.trim()) ?? [];
    if (name === undefined) {
      throw new OperatorError(
        `--settings ${file}: line ${index + 1} must be NAME=VALUE, without white space around the =. Write quotation marks around a value with white space before #, and a comment on a line of its own.`,
      );
    }
    environment[name] ??= quoted ?? plain ?? '';
  }
}

/**
 * Reads a text file in UTF-8, without its byte order mark.
 * @param setting the beginning of the error message, which omits the path: it may be a secret in the wrong variable
 * @throws OperatorError when the file cannot be read
 */
export function readSettingFile(path: string, setting: string): string {
  try {
    // Reading a pipe without a writer would never end, and no signal could end it.
    if (!statSync(path).isFile()) throw new Error('it is not a regular file');
    return readFileSync(path, 'utf8').replace(/^\ufeff/, '');
  } catch (error) {
    const { errno, message } = error as NodeJS.ErrnoException;
    const reason = errno === undefined ? message : getSystemErrorMessage(errno);
    throw new OperatorError(`${setting} cannot be read: ${reason}.`);
  }
}

import { readFileSync, statSync } from 'node:fs';
import { getSystemErrorMessage, parseEnv } from 'node:util';
import { OperatorError } from '../../plants/errors/operator.error';

/** A quoted value, which may span lines. */
const QUOTED_VALUE = /(?<==[ \t]*)(["'`])[^]*?\1/g;
/** An assignment, a comment or an empty line. The parser of Node.js silently ignores any other line. */
const LINE = /^\s*(?:(?:export\s+)?[A-Za-z_]\w*\s*=.*|#.*)?$/;

/**
 * Adds the variables of a file to an environment, as Node.js parses such files. Does not overwrite variables that
 * are already set, even to an empty string.
 *
 * @throws OperatorError when the file cannot be read, or has a line that is not NAME=VALUE
 */
export function addEnvFile(file: string, environment: NodeJS.ProcessEnv): void {
  const content = readSettingFile(file, `--env-file ${file}`);
  const lines = content
    .replace(QUOTED_VALUE, (value) => value.replace(/[^\n]/g, ''))
    .split(/\r?\n/);
  const invalid = lines.findIndex((line) => !LINE.test(line));
  if (invalid >= 0) {
    throw new OperatorError(`--env-file ${file}: line ${invalid + 1} must be NAME=VALUE`);
  }
  for (const [name, value] of Object.entries(parseEnv(content))) environment[name] ??= value;
}

/**
 * Reads a text file.
 *
 * @param setting the beginning of the error message
 * @throws OperatorError when the file cannot be read. The message contains the reason, but not the path, which may
 *   be a secret in the wrong variable
 */
export function readSettingFile(path: string, setting: string): string {
  try {
    // Reading a pipe without a writer would never end, and no signal could end it.
    if (!statSync(path).isFile()) throw new Error('it is not a regular file');
    return readFileSync(path, 'utf8');
  } catch (error) {
    const { errno, message } = error as NodeJS.ErrnoException;
    const reason = errno === undefined ? message : getSystemErrorMessage(errno);
    throw new OperatorError(`${setting} cannot be read: ${reason}`);
  }
}

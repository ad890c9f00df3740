import { readFileSync, statSync } from 'node:fs';
import { getSystemErrorMessage, parseEnv } from 'node:util';
import { OperatorError } from '../../plants/errors/operator.error';
import { VARIABLES } from './variables';

/** PostgreSQL's driver and OpenTelemetry's agent read variables of their own. */
const FOREIGN_VARIABLE = /^(?:PG|OTEL_)/;

const SYNTAX =
  'must be NAME=VALUE, without white space around the =. Write quotation marks around a value with #, and a comment on a line of its own';

/**
 * Adds the variables of a file to an environment, except those that are set there, even to an empty string.
 * @throws OperatorError when the file cannot be read, with a line for each of its lines that is not a comment and cannot
 *   be read whole, has an unknown name, or sets a variable again
 */
export function addSettingsFile(file: string, environment: NodeJS.ProcessEnv): void {
  const variables = new Map<string, string>();
  const errors: string[] = [];
  const lines = readSettingFile(file, `--settings ${file}`).split(/\r?\n/);
  for (const [index, line] of lines.entries()) {
    const isComment = /^\s*(?:#|$)/.test(line);
    if (isComment) continue;
    const reject = (reason: string): void => {
      errors.push(`--settings ${file}: line ${index + 1}${reason}.`);
    };
    const [name, value] = readLine(line) ?? [];
    if (name === undefined || value === undefined) {
      reject(` ${SYNTAX}`);
    } else if (!isKnown(name)) {
      reject(`: ${name} is not a variable of the service: correct its name, or remove it`);
    } else if (variables.has(name)) {
      reject(`: ${name} occurs twice: remove one of its lines`);
    } else {
      variables.set(name, value);
    }
  }
  if (errors.length > 0) throw new OperatorError(errors.join('\n'));
  for (const [name, value] of variables) environment[name] ??= value;
}

/**
 * Reads a line as `node --env-file` does. Returns undefined if Node.js would change the value or leave a part of it out:
 * Docker, systemd and shells read such a line differently.
 */
function readLine(line: string): [name: string, value: string] | undefined {
  const [entry] = Object.entries(parseEnv(line));
  const [name, value = ''] = entry ?? [];
  if (name === undefined) return undefined;
  const written = line.trim().replace(/^export +/, '');
  const isPlain = written === `${name}=${value}` && !/^["'`]/.test(value);
  const isQuoted = ['"', "'", '`'].some((mark) => written === `${name}=${mark}${value}${mark}`);
  return isPlain || isQuoted ? [name, value] : undefined;
}

/** Whether the service, or a library that it uses, reads the variable. The file was written for the service alone. */
function isKnown(name: string): boolean {
  return FOREIGN_VARIABLE.test(name) || VARIABLES.some((known) => known.name === name);
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

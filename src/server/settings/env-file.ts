import { readFileSync, statSync } from 'node:fs';
import { getSystemErrorMessage, parseEnv } from 'node:util';
import { OperatorError } from '../../plants/errors/operator.error';

/** A value in quotation marks, which may span lines, or a value without `#` and without a quotation mark at its start. */
const VALUE = /"[^"]*"|'[^']*'|`[^`]*`|[^\s#"'`](?:[^#\r\n]*[^#\s])?/.source;
const COMMENT = /#[^\r\n]*/.source;
/**
 * A line that the parser of Node.js reads as it is written. The parser ignores other lines, cuts off values at any `#`,
 * and takes the next line for the value if only white space follows `=`.
 */
const LINE = new RegExp(
  String.raw`[ \t]*(?:${COMMENT}|(?:export +)?[A-Za-z_]\w*[ \t]*=(?:[ \t]*(?:${VALUE})[ \t]*(?:(?<=[ \t])${COMMENT})?|[ \t]+${COMMENT})?)?(?:\r?\n|$)`,
  'y',
);

/**
 * Adds the variables of a file to an environment, as Node.js parses such files. Does not overwrite variables that
 * are already set, even to an empty string. Skips a byte order mark.
 *
 * @throws OperatorError when the file cannot be read, or has a line that would not be read as it is written
 */
export function addEnvFile(file: string, environment: NodeJS.ProcessEnv): void {
  const content = readSettingFile(file, `--env-file ${file}`);
  for (LINE.lastIndex = 0; LINE.lastIndex < content.length;) {
    const start = LINE.lastIndex;
    if (LINE.test(content)) continue;
    const number = content.slice(0, start).split('\n').length;
    throw new OperatorError(
      `--env-file ${file}: line ${number} must be NAME=VALUE. Write quotation marks around a value with # or a quotation mark, and nothing after the = of an empty value.`,
    );
  }
  for (const [name, value] of Object.entries(parseEnv(content))) environment[name] ??= value;
}

/**
 * Reads a text file in UTF-8, without its byte order mark.
 *
 * @param setting the beginning of the error message
 * @throws OperatorError when the file cannot be read. The message contains the reason, but not the path, which may
 *   be a secret in the wrong variable
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

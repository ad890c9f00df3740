import { parseEnv } from 'node:util';
import { EnvironmentError } from './environment.error';
import { readSettingFile } from './setting-file';

/** The text between quotes, which may span lines. */
const QUOTED_VALUE = /(?<==[ \t]*)(["'`])[^]*?\1/g;
/** An assignment, a comment or nothing. Node's parser silently ignores any other line. */
const LINE = /^\s*(?:(?:export\s+)?[A-Za-z_]\w*\s*=.*|#.*)?$/;

/**
 * Adds the variables of a file to an environment, as Node.js parses such files. A variable that the
 * environment has, even an empty one, stays as it is.
 *
 * @throws EnvironmentError when the file cannot be read, or has a line that assigns nothing
 */
export function addEnvFile(file: string, environment: NodeJS.ProcessEnv): void {
  let content: string;
  try {
    content = readSettingFile(file);
  } catch (error) {
    throw new EnvironmentError(`--env-file ${file} ${(error as Error).message}`);
  }
  const lines = content
    .replace(QUOTED_VALUE, (value) => value.replace(/[^\n]/g, ''))
    .split(/\r?\n/);
  const invalid = lines.findIndex((line) => !LINE.test(line));
  if (invalid >= 0) {
    throw new EnvironmentError(`--env-file ${file}: line ${invalid + 1} must be NAME=VALUE`);
  }
  for (const [name, value] of Object.entries(parseEnv(content))) environment[name] ??= value;
}

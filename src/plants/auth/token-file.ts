import { isUtf8 } from 'node:buffer';
import { closeSync, fstatSync, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs';
import { resolve } from 'node:path';
import { OperatorError, OptionError } from '../errors/operator.error';
import { FileWatcher } from '../file-watcher';
import { hashToken } from './bearer-token';
import {
  formatListedToken,
  generateToken,
  type ListedToken,
  parseListedToken,
  rejectRepeatedTokens,
  TokenList,
} from './listed-token';

/**
 * Reads a file of accepted tokens.
 *
 * @throws OptionError when the file cannot be used; the message never shows a token
 */
export function openTokenFile(path: string): FileWatcher<TokenList> {
  const file = resolve(path);
  const name = `The token file ${file}`;
  try {
    return new FileWatcher(name, [file], (text) => new TokenList(name, parseTokenFile(text)));
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const advice = 'it does not exist; create it with "plant-store token create"';
    throw new OptionError(
      'auth.tokensFile',
      `auth.tokensFile names the file ${file}, which cannot be used: ${code === 'ENOENT' ? advice : message}.`,
    );
  }
}

/**
 * Parses a token file: one token per line, in the syntax of {@link parseListedToken}. `#` starts a comment at the
 * start of a line or after white space.
 *
 * @throws Error when the file is invalid; the message names the first invalid line
 */
export function parseTokenFile(content: Uint8Array): ListedToken[] {
  if (!isUtf8(content)) throw new Error('it is not UTF-8');
  // The decoder drops a byte order mark.
  const lines = new TextDecoder().decode(content).split(/\r?\n/);
  const tokens = lines.flatMap((line, index) => {
    const entry = line.replace(/(?:^|\s)#.*/s, '').trim();
    return entry === '' ? [] : [parseListedToken(entry, `line ${index + 1}`)];
  });
  return rejectRepeatedTokens(tokens);
}

/**
 * Generates a token, and appends its digest to a token file. Creates the file if it is missing.
 *
 * @param publish called with the token before its digest is written. If it throws, the file is unchanged
 * @throws OperatorError when the file is invalid, because a service would then ignore the change
 */
export function createToken(
  file: string,
  { name, expires, scopes }: Partial<ListedToken>,
  publish: (token: string) => void,
): void {
  const token = generateToken();
  const line = formatListedToken({ digest: hashToken(token), name, expires, scopes });
  // Append in place instead of replacing the file: it may be a symbolic link, or mounted into a container.
  const descriptor = openSync(file, 'a+', 0o600);
  try {
    // Reading a pipe might never end.
    if (!fstatSync(descriptor).isFile()) {
      throw new OperatorError(`The token file ${file} is not a regular file.`);
    }
    const content = readFileSync(descriptor);
    try {
      parseTokenFile(content);
    } catch (error) {
      throw new OperatorError(`The token file ${file} is invalid: ${(error as Error).message}.`);
    }
    publish(token);
    const separator = content.length > 0 && !content.toString().endsWith('\n') ? '\n' : '';
    // A single write, so that several processes can append at once.
    writeSync(descriptor, `${separator}${line}\n`);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

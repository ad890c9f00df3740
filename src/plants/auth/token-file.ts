import { isUtf8 } from 'node:buffer';
import {
  closeSync,
  fstatSync,
  fsyncSync,
  openSync,
  readFileSync,
  statSync,
  writeSync,
} from 'node:fs';
import { resolve } from 'node:path';
import { Logger } from '@nestjs/common';
import { OperatorError, OptionError } from '../errors/operator.error';
import { type BearerToken, hashToken } from './bearer-token';
import type { Grant } from './caller';
import { FileWatcher } from './file-watcher';
import {
  formatListedToken,
  type ListedToken,
  generateToken,
  parseListedToken,
  TokenList,
  describeGuessableTokens,
} from './listed-token';

/**
 * Accepts the tokens of a file, and reloads it when it changes. While the file cannot be read or is invalid,
 * the last valid list stays in use.
 */
export class TokenFile {
  private readonly logger = new Logger('TokenFile');
  private readonly path: string;
  private readonly file: FileWatcher<TokenList>;

  /** @throws OptionError when the file cannot be used; the message never shows a token */
  constructor(path: string) {
    this.path = resolve(path);
    try {
      if (!statSync(this.path).isFile()) throw new Error('it is not a regular file');
      this.file = new FileWatcher([this.path], (content) => {
        const tokens = parseTokenFile(content);
        const warning = describeGuessableTokens(`The token file ${this.path}`, tokens);
        if (warning !== undefined) this.logger.warn(`${warning}.`);
        return new TokenList(tokens);
      });
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      const advice = 'it does not exist; create it with "plant-store token create"';
      const reason = code === 'ENOENT' ? advice : message;
      const problem = `names the file ${this.path}, which cannot be used: ${reason}`;
      throw new OptionError('auth.tokensFile', problem);
    }
  }

  /** Whether the file, as it is now, can be used. */
  get isValid(): boolean {
    return this.file.isValid;
  }

  /** Returns and throws like {@link TokenList.verify}. */
  verify(token: BearerToken): Grant | undefined {
    return this.file.current.verify(token);
  }

  start(): void {
    this.file.start({
      onChange: ({ size }) => {
        this.logger.log(`Reloaded the token file ${this.path}. Number of tokens: ${size}.`);
      },
      onError: (message) => {
        this.logger.error(
          `The token file ${this.path} cannot be used: ${message}. Keeping the last valid tokens.`,
        );
      },
    });
  }

  stop(): void {
    this.file.stop();
  }
}

/**
 * Parses a token file: one token per line, in the syntax of {@link parseListedToken}. `#` starts a comment.
 *
 * @throws Error when the file is invalid; the message names the first invalid line
 */
export function parseTokenFile(content: Uint8Array): ListedToken[] {
  if (!isUtf8(content)) throw new Error('it is not UTF-8');
  const tokens = new Map<string, ListedToken>();
  // The decoder drops a byte order mark.
  const lines = new TextDecoder().decode(content).split(/\r?\n/);
  for (const [index, line] of lines.entries()) {
    const entry = line.replace(/#.*/s, '').trim();
    if (entry === '') continue;
    const token = parseListedToken(entry, `line ${index + 1}`);
    const same = tokens.get(token.digest);
    if (same) throw new Error(`${token.location} repeats the token of ${same.location}`);
    tokens.set(token.digest, token);
  }
  return [...tokens.values()];
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

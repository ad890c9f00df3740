import { hash } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { Logger, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import type { BearerToken } from './bearer-token';
import { parseTokenFile, TokenFileError } from './token-file';
import { TokenList } from './token-list';
import { type Caller, TokenVerifier } from './token-verifier';

/**
 * How often the file is read, in milliseconds. A change counts at the second reading that sees it,
 * so that a file caught in the middle of being written does not: within two intervals.
 */
const INTERVAL = 1000;

/**
 * Accepts the tokens of a file, and follows its changes.
 *
 * It reads instead of asking for notifications or times of change, which are unreliable on network
 * and container file systems and do not see through symbolic links. A file that cannot be read, or
 * has a fault, leaves the last good list in force.
 */
export class TokenFileVerifier
  extends TokenVerifier
  implements OnModuleInit, OnApplicationShutdown
{
  private readonly logger = new Logger('TokenFile');
  private readonly path: string;
  private list: TokenList;
  /** Digests of what the list was made of, or was refused, and of what the last reading found. */
  private judged: string;
  private seen: string;
  private fault = '';
  private timer?: NodeJS.Timeout;
  private stopped = false;

  /**
   * @param path relative to the working directory
   * @throws TokenFileError when the file cannot be used
   */
  constructor(path: string) {
    super();
    this.path = resolve(path);
    try {
      // A pipe gives its content once; the next reading would revoke it.
      if (!statSync(this.path).isFile()) throw new TokenFileError('it is not a regular file');
      const content = readFileSync(this.path);
      this.list = new TokenList(parseTokenFile(content));
      this.seen = this.judged = fingerprint(content);
    } catch (error) {
      throw new TokenFileError(`The token file ${this.path} cannot be used: ${reason(error)}.`);
    }
  }

  verify(token: BearerToken): Caller | undefined {
    return this.list.verify(token);
  }

  onModuleInit(): void {
    this.schedule();
  }

  onApplicationShutdown(): void {
    this.stopped = true;
    clearTimeout(this.timer);
  }

  private schedule(): void {
    this.timer = setTimeout(() => void this.readAgain(), INTERVAL).unref();
  }

  private async readAgain(): Promise<void> {
    try {
      this.follow(await readFile(this.path));
      this.fault = '';
    } catch (error) {
      this.report(reason(error));
    }
    if (!this.stopped) this.schedule();
  }

  private follow(content: Buffer): void {
    const found = fingerprint(content);
    if (found !== this.judged && found === this.seen) {
      this.judged = found;
      const tokens = parseTokenFile(content);
      this.list = new TokenList(tokens);
      this.logger.log(`Read ${this.path} again; tokens: ${tokens.length}.`);
    }
    this.seen = found;
  }

  /** Says each fault once, however often it is met. */
  private report(fault: string): void {
    if (fault === this.fault) return;
    this.fault = fault;
    this.logger.error(`${this.path}: ${fault}. The tokens read before stay in force.`);
  }
}

function fingerprint(content: Buffer): string {
  return hash('sha256', content);
}

function reason(error: unknown): string {
  return (error as Error).message;
}

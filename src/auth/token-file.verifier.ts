import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { Logger, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { FileFollower } from './file-follower';
import type { BearerToken } from './bearer-token';
import type { Scope } from './scope';
import { parseTokenFile, TokenFileError } from './token-file';
import { TokenList } from './token-list';
import { type Caller, TokenVerifier } from './token-verifier';

/**
 * Accepts the tokens of a file, and follows its changes. While the file cannot be read or is invalid,
 * the last valid list stays in use.
 */
export class TokenFileVerifier
  extends TokenVerifier
  implements OnModuleInit, OnApplicationShutdown
{
  private readonly logger = new Logger('TokenFile');
  private readonly path: string;
  private readonly file: FileFollower<'tokens', TokenList>;

  /**
   * @param path relative to the working directory
   * @throws TokenFileError when the file cannot be used
   */
  constructor(path: string) {
    super();
    this.path = resolve(path);
    try {
      if (!statSync(this.path).isFile()) throw new TokenFileError('it is not a regular file');
      this.file = new FileFollower(
        { tokens: this.path },
        ({ tokens }) => new TokenList(parseTokenFile(tokens)),
      );
    } catch (error) {
      const { message } = error as Error;
      throw new TokenFileError(`The token file ${this.path} cannot be used: ${message}.`);
    }
  }

  verify(token: BearerToken, scope?: Scope): Caller | undefined {
    return this.file.current.verify(token, scope);
  }

  onModuleInit(): void {
    this.file.start({
      changed: ({ size }) => {
        this.logger.log(`Read the changed token file ${this.path}. Number of tokens: ${size}.`);
      },
      failed: (message) => {
        this.logger.error(
          `The token file ${this.path} cannot be used: ${message}. The last valid tokens stay in use.`,
        );
      },
    });
  }

  onApplicationShutdown(): void {
    this.file.stop();
  }
}

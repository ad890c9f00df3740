import { readFileSync, unwatchFile, watchFile } from 'node:fs';
import type { Server } from 'node:https';
import { createSecureContext } from 'node:tls';
import { Logger } from '@nestjs/common';

/** Where certificate and key are, both PEM. */
export interface TlsFiles {
  /** The certificate, and below it those that lead to the root. */
  readonly certificate: string;
  readonly key: string;
}

/** Certificate and key cannot be used. The message is one sentence for an operator. */
export class TlsError extends Error {
  override readonly name = 'TlsError';
}

/** Milliseconds between looks at the files. */
const WATCH_INTERVAL = 1000;

/**
 * Reads certificate and key.
 *
 * @throws TlsError when one cannot be read, is not PEM, or does not belong to the other
 */
export function readTls({ certificate, key }: TlsFiles): { cert: Buffer; key: Buffer } {
  try {
    const pair = { cert: readFileSync(certificate), key: readFileSync(key) };
    createSecureContext(pair);
    return pair;
  } catch (cause) {
    const { message } = cause as Error;
    throw new TlsError(`TLS_CERT and TLS_KEY cannot be used: ${message}.`, { cause });
  }
}

/**
 * Has new connections use the files as they are after each change. While they cannot be used, for
 * example when only one of the two is written yet, the last good pair stays in use.
 */
export function reloadTls(server: Server, files: TlsFiles): void {
  const logger = new Logger('TLS');
  const reload = (): void => {
    try {
      server.setSecureContext(readTls(files));
      logger.log('Certificate and key were read anew.');
    } catch (error) {
      logger.warn(`The last good pair stays in use: ${(error as Error).message}`);
    }
  };
  for (const file of [files.certificate, files.key]) {
    watchFile(file, { interval: WATCH_INTERVAL, persistent: false }, reload);
    server.once('close', () => {
      unwatchFile(file, reload);
    });
  }
}

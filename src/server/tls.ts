import { createPrivateKey, X509Certificate } from 'node:crypto';
import type { Server } from 'node:https';
import { createSecureContext } from 'node:tls';
import { Logger } from '@nestjs/common';
import { FileFollower } from '../auth';
import { OperatorError } from '../errors';

/** Paths of PEM files. */
export interface TlsFiles {
  /** Followed by the intermediate certificates. */
  readonly certificate: string;
  readonly key: string;
}

const NO_PAIR =
  'TLS_CERT must begin with a certificate in PEM, and TLS_KEY must be its private key in PEM, without a passphrase';

type TlsPair = FileFollower<{ cert: Buffer; key: Buffer }>;

/** @throws OperatorError when a file cannot be read, is not PEM, or the two do not belong together */
export function readTls({ certificate, key }: TlsFiles): TlsPair {
  try {
    return new FileFollower([certificate, key], (cert: Buffer, keyOfCert: Buffer) => {
      const pair = { cert, key: keyOfCert };
      // A secure context takes a key of another type, and then every handshake fails.
      if (!isPair(pair)) throw new Error(NO_PAIR);
      createSecureContext(pair);
      return pair;
    });
  } catch (cause) {
    throw new OperatorError(cannotBeUsed((cause as Error).message), { cause });
  }
}

/**
 * Uses the certificate and key for new connections, as they are after each change, until the server
 * is closed. While they are invalid, for example because only one of the two is written yet, the last
 * valid pair stays in use.
 */
export function reloadTls(server: Server, pair: TlsPair): void {
  const logger = new Logger('TLS');
  pair.start({
    changed: (contents) => {
      server.setSecureContext(contents);
      logger.log('Read the changed certificate and key. New connections use them.');
    },
    failed: (message) => {
      logger.warn(`${cannotBeUsed(message)} The last valid pair stays in use.`);
    },
  });
  server.once('close', () => {
    pair.stop();
  });
}

function isPair({ cert, key }: { cert: Buffer; key: Buffer }): boolean {
  try {
    return new X509Certificate(cert).checkPrivateKey(createPrivateKey(key));
  } catch {
    return false;
  }
}

function cannotBeUsed(reason: string): string {
  return `TLS_CERT and TLS_KEY cannot be used: ${reason}.`;
}

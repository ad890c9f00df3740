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

type TlsPair = FileFollower<{ cert: Buffer; key: Buffer }>;

/** @throws OperatorError when a file cannot be read, is not PEM, or the two do not belong together */
export function readTls({ certificate, key }: TlsFiles): TlsPair {
  try {
    return new FileFollower([certificate, key], (cert: Buffer, keyOfCert: Buffer) => {
      const pair = { cert, key: keyOfCert };
      assertMatch(pair);
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

/** A secure context takes a key of another type than its certificate, and every handshake fails. */
function assertMatch({ cert, key }: { cert: Buffer; key: Buffer }): void {
  const certificate = parse('TLS_CERT has no certificate in PEM', () => new X509Certificate(cert));
  const privateKey = parse('TLS_KEY has no private key in PEM without a passphrase', () =>
    createPrivateKey(key),
  );
  if (certificate.checkPrivateKey(privateKey)) return;
  throw new Error('TLS_KEY is not the key of the first certificate in TLS_CERT');
}

/** Calls a parser of OpenSSL, whose own messages are codes. */
function parse<T>(fault: string, read: () => T): T {
  try {
    return read();
  } catch (cause) {
    throw new Error(fault, { cause });
  }
}

function cannotBeUsed(reason: string): string {
  return `TLS_CERT and TLS_KEY cannot be used: ${reason}.`;
}

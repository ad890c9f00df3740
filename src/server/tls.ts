import { createPrivateKey, X509Certificate } from 'node:crypto';
import type { Server } from 'node:https';
import { createSecureContext } from 'node:tls';
import { Logger } from '@nestjs/common';
import { FileFollower, OperatorError } from '../plants/program';

/** Paths of PEM files. */
export interface TlsFiles {
  /** Followed by the intermediate certificates. */
  readonly certificate: string;
  readonly key: string;
}

const NO_PAIR =
  'TLS_CERT must begin with a certificate in PEM, and TLS_KEY must be its private key in PEM, without a passphrase';

/** Forward secrecy and authenticated encryption only, RFC 9325 section 4. Node.js also offers others. */
const CIPHERS = [
  ...['TLS_AES_256_GCM_SHA384', 'TLS_CHACHA20_POLY1305_SHA256', 'TLS_AES_128_GCM_SHA256'],
  ...['ECDHE+AESGCM', 'ECDHE+CHACHA20'],
].join(':');

interface Pair {
  readonly cert: Buffer;
  readonly key: Buffer;
}

/** The options of a server, and of its new secure contexts, which keep none of the old. */
export function secureOptions(pair: Pair): Pair & { ciphers: string } {
  return { ...pair, ciphers: CIPHERS };
}

type TlsPair = FileFollower<Pair>;

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
      server.setSecureContext(secureOptions(contents));
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

function isPair({ cert, key }: Pair): boolean {
  try {
    return new X509Certificate(cert).checkPrivateKey(createPrivateKey(key));
  } catch {
    return false;
  }
}

function cannotBeUsed(reason: string): string {
  return `TLS_CERT and TLS_KEY cannot be used: ${reason}.`;
}

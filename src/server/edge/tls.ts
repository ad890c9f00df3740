import { createPrivateKey, X509Certificate } from 'node:crypto';
import { createServer, type Server } from 'node:https';
import { createSecureContext, type SecureContextOptions } from 'node:tls';
import { Logger } from '@nestjs/common';
import { FileWatcher } from '../../plants/auth/file-watcher';
import { OperatorError } from '../../plants/errors/operator.error';

/** Paths of PEM files. */
export interface TlsFiles {
  /** Followed by the intermediate certificates. */
  readonly certificate: string;
  readonly key: string;
}

const NO_PAIR =
  'TLS_CERT must begin with a certificate in PEM, and TLS_KEY must be its private key in PEM, without a passphrase';

/** Forward secrecy and authenticated encryption only, RFC 9325 section 4. Node.js also offers others. */
// prettier-ignore
const CIPHERS = [
  'TLS_AES_256_GCM_SHA384', 'TLS_CHACHA20_POLY1305_SHA256', 'TLS_AES_128_GCM_SHA256',
  'ECDHE+AESGCM', 'ECDHE+CHACHA20',
].join(':');

/** @throws OperatorError when a file cannot be read, is not PEM, or the two do not belong together */
export function readTls({ certificate, key }: TlsFiles): FileWatcher<SecureContextOptions> {
  try {
    return new FileWatcher([certificate, key], readPair);
  } catch (cause) {
    throw new OperatorError(cannotBeUsed((cause as Error).message), { cause });
  }
}

/**
 * Creates a server that uses the certificate and key for new connections, as they are after each
 * change. While they are invalid, for example because only one of the two is written yet, the last
 * valid pair stays in use.
 *
 * @throws OperatorError when the certificate or its key cannot be used
 */
export function createTlsServer(files: TlsFiles, settings: { headersTimeout: number }): Server {
  const pair = readTls(files);
  const handshakeTimeout = settings.headersTimeout;
  const server = createServer({ ...settings, ...pair.current, handshakeTimeout });
  const logger = new Logger('TLS');
  pair.start({
    onChange: (options) => {
      server.setSecureContext(options);
      logger.log('Read the changed certificate and key. New connections use them.');
    },
    onError: (message) => {
      logger.warn(`${cannotBeUsed(message)} The last valid pair stays in use.`);
    },
  });
  server.once('close', () => {
    pair.stop();
  });
  return server;
}

/** All options of a secure context: a new one keeps none of the old. */
function readPair(cert: Buffer, key: Buffer): SecureContextOptions {
  // A secure context takes a key of another type, and then every handshake fails.
  if (!belongTogether(cert, key)) throw new Error(NO_PAIR);
  const options = { cert, key, ciphers: CIPHERS };
  createSecureContext(options);
  return options;
}

function belongTogether(cert: Buffer, key: Buffer): boolean {
  try {
    return new X509Certificate(cert).checkPrivateKey(createPrivateKey(key));
  } catch {
    return false;
  }
}

function cannotBeUsed(reason: string): string {
  return `TLS_CERT and TLS_KEY cannot be used: ${reason}.`;
}

import { createPrivateKey, X509Certificate } from 'node:crypto';
import { createServer, type Server } from 'node:https';
import { createSecureContext, type SecureContextOptions } from 'node:tls';
import { Logger } from '@nestjs/common';
import { FileWatcher } from '../../plants/auth/file-watcher';
import { OperatorError } from '../../plants/errors/operator.error';
import type { TlsFiles } from '../settings/environment';

const KEY_PAIR_MESSAGE =
  'TLS_CERT must begin with a certificate in PEM, and TLS_KEY must be its private key in PEM, without a passphrase';

/** Only ciphers with forward secrecy and authenticated encryption, RFC 9325 section 4. Node.js also allows others. */
// prettier-ignore
const CIPHERS = [
  'TLS_AES_256_GCM_SHA384', 'TLS_CHACHA20_POLY1305_SHA256', 'TLS_AES_128_GCM_SHA256',
  'ECDHE+AESGCM', 'ECDHE+CHACHA20',
].join(':');

/**
 * Reads a certificate and its key.
 *
 * @throws OperatorError when a file cannot be read or is not PEM, or the key is not that of the certificate
 */
export function readTls({ certificate, key }: TlsFiles): FileWatcher<SecureContextOptions> {
  try {
    return new FileWatcher([certificate, key], readPair);
  } catch (cause) {
    throw new OperatorError(formatTlsError((cause as Error).message), { cause });
  }
}

/**
 * Creates a server that reloads the certificate and key for new connections when the files change. Keeps the
 * last valid pair while they are invalid, for example because only one of the files is written yet.
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
      logger.log('Reloaded the certificate and key for new connections.');
    },
    onError: (message) => {
      logger.warn(`${formatTlsError(message)} Keeping the last valid pair.`);
    },
  });
  server.once('close', () => {
    pair.stop();
  });
  return server;
}

/** Returns all TLS options, because setSecureContext() replaces them all. */
function readPair(cert: Buffer, key: Buffer): SecureContextOptions {
  // createSecureContext() accepts a key of the wrong type, and then every handshake fails.
  if (!isKeyPair(cert, key)) throw new Error(KEY_PAIR_MESSAGE);
  const options = { cert, key, ciphers: CIPHERS };
  createSecureContext(options);
  return options;
}

function isKeyPair(cert: Buffer, key: Buffer): boolean {
  try {
    return new X509Certificate(cert).checkPrivateKey(createPrivateKey(key));
  } catch {
    return false;
  }
}

function formatTlsError(reason: string): string {
  return `TLS_CERT and TLS_KEY cannot be used: ${reason}.`;
}

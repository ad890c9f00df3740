import { createPrivateKey, X509Certificate } from 'node:crypto';
import { createServer, type Server } from 'node:https';
import { createSecureContext } from 'node:tls';
import { Logger } from '@nestjs/common';
import { OperatorError } from '../../plants/errors/operator.error';
import { FileWatcher } from '../../plants/auth/file-watcher';
import type { TlsFiles } from '../settings/environment';

/** A certificate chain and its private key, in PEM. */
type KeyPair = Readonly<Record<'cert' | 'key', Buffer>>;

const KEY_PAIR_MESSAGE =
  'TLS_CERT must begin with a certificate in PEM, and TLS_KEY must be its private key in PEM, without a passphrase';

/** @throws OperatorError when a file cannot be read or is not PEM, or the key is not that of the certificate */
export function readTls({ certificate, key }: TlsFiles): FileWatcher<KeyPair> {
  try {
    return new FileWatcher('TLS_CERT and TLS_KEY', [certificate, key], parsePair);
  } catch (cause) {
    const { message } = cause as Error;
    throw new OperatorError(`TLS_CERT and TLS_KEY cannot be used: ${message}.`, { cause });
  }
}

/**
 * Creates a server that reloads changed files for new connections. It keeps the last valid pair while they are invalid,
 * for example because only one of them is written yet. Throws like {@link readTls}.
 */
export function createTlsServer(files: TlsFiles, settings: { headersTimeout: number }): Server {
  const pair = readTls(files);
  const handshakeTimeout = settings.headersTimeout;
  const server = createServer({ ...settings, ...pair.current, handshakeTimeout });
  const warnIfInvalid = ({ cert }: KeyPair): void => {
    const error = findValidityError(cert);
    if (error !== undefined) new Logger('TLS').warn(error);
  };
  warnIfInvalid(pair.current);
  pair.start((changed) => {
    server.setSecureContext(changed);
    warnIfInvalid(changed);
  });
  server.once('close', () => {
    pair.stop();
  });
  return server;
}

/** Explains in a sentence why clients reject a chain in PEM now: a certificate has expired, or is not valid yet. */
export function findValidityError(chain: Buffer): string | undefined {
  // The file may contain the key, too. A block is: its first line, its lines, and its last line.
  const pems = chain.toString().match(/-----BEGIN [A-Z ]*CERTIFICATE-[^]+?-----END .*/g) ?? [];
  for (const pem of pems) {
    const { validFromDate, validToDate, validFrom, validTo } = new X509Certificate(pem);
    if (validFromDate <= new Date() && new Date() <= validToDate) continue;
    return `A certificate in TLS_CERT is valid only from ${validFrom} to ${validTo}.`;
  }
  return undefined;
}

function parsePair(cert: Buffer, key: Buffer): KeyPair {
  // createSecureContext() accepts a key of the wrong type, and then every handshake fails.
  if (!isKeyPair(cert, key)) throw new Error(KEY_PAIR_MESSAGE);
  createSecureContext({ cert, key });
  return { cert, key };
}

function isKeyPair(cert: Buffer, key: Buffer): boolean {
  try {
    return new X509Certificate(cert).checkPrivateKey(createPrivateKey(key));
  } catch {
    return false;
  }
}

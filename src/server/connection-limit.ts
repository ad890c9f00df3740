import { readdirSync, readFileSync } from 'node:fs';
import type { Server } from 'node:net';
import { Logger } from '@nestjs/common';
import { LogThrottle } from '../http';

/** Descriptors left for what is opened later: sessions of the database, files, the issuer of tokens. */
const RESERVED = 32;

/**
 * Closes connections beyond a limit as they come, and logs how many, one line a second at most.
 *
 * The limit is lowered if the process may not open that many files (`ulimit -n`). At that point Node
 * would close connections silently, and the service could not open a file or a database session.
 *
 * @param limit connections open at the same time
 */
export function limitConnections(server: Server, limit: number): void {
  const logger = new Logger('PlantStore');
  server.maxConnections = limit;
  server.once('listening', () => {
    const descriptors = freeDescriptors();
    if (descriptors - RESERVED >= limit) return;
    server.maxConnections = Math.max(1, descriptors - RESERVED);
    logger.warn(
      `The service accepts only ${server.maxConnections} connections instead of ${limit}, because it may not open more files. Raise the limit of open files (ulimit -n), or lower MAX_CONNECTIONS.`,
    );
  });
  const throttle = new LogThrottle<string>(0, (reason, count) => {
    logger.warn(`Closed ${count} new connections within a second: ${reason}`);
  });
  server.on('drop', () => {
    throttle.admit(`${server.maxConnections} are open, which is the limit (MAX_CONNECTIONS).`);
  });
}

/** Infinite where the system does not say. */
function freeDescriptors(): number {
  try {
    const limits = readFileSync('/proc/self/limits', 'utf8');
    const limit = Number(/^Max open files\s+(\d+)/m.exec(limits)?.[1] ?? Infinity);
    return limit - readdirSync('/proc/self/fd').length;
  } catch {
    return Infinity;
  }
}

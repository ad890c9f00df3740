import { constants } from 'node:os';
import { getSystemErrorMessage } from 'node:util';

/**
 * Formats an error of the operating system, such as `ENOSPC: no space left on device, write '/data'`. Node.js does not
 * know the name of an exceeded quota.
 * @param path the file or directory that the message names. By default, the message of the error, which names its path
 * or address
 */
export function formatSystemError(error: unknown, path?: string): string {
  const { errno, code, message, syscall, path: errorPath } = error as NodeJS.ErrnoException;
  if (errno === undefined || syscall === undefined) return message;
  const isQuota = errno === -constants.errno.EDQUOT;
  if (!isQuota && path === undefined) return message;
  const reason = isQuota
    ? 'EDQUOT: disk quota exceeded'
    : `${code}: ${getSystemErrorMessage(errno)}`;
  const name = path ?? errorPath;
  return `${reason}, ${syscall}${name === undefined ? '' : ` '${name}'`}`;
}

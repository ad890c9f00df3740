import { openSync } from 'node:fs';
import { constants } from 'node:os';
import { formatSystemError } from './system-error';

/** Creates the error that Node.js throws if opening a file exceeds a quota. */
function createQuotaError(path?: string): Error {
  const message = `Unknown system error -122: Unknown system error -122, open '${path}'`;
  const details = { errno: -constants.errno.EDQUOT, code: 'Unknown system error -122' };
  return Object.assign(new Error(message), { ...details, syscall: 'open', path });
}

describe('formatSystemError', () => {
  it.each([
    ['the path of the error', createQuotaError('/srv/a.db'), undefined, "open '/srv/a.db'"],
    ['the given path', createQuotaError('/srv/.a.part'), '/srv/a.db', "open '/srv/a.db'"],
    ['no path', createQuotaError(), undefined, 'open'],
  ])('names an exceeded quota with %s', (_case, error, path, operation) => {
    expect(formatSystemError(error, path)).toBe(`EDQUOT: disk quota exceeded, ${operation}`);
  });

  it.each([
    ['with a path', () => openSync('/does/not/exist', 'r')],
    ['without errno', () => JSON.parse('{') as unknown],
  ])('returns the message of an error %s', (_case, fail) => {
    let error: unknown;
    try {
      fail();
    } catch (thrown) {
      error = thrown;
    }
    expect(formatSystemError(error)).toBe((error as Error).message);
  });

  it('replaces the path of an error by the given one', () => {
    const error = Object.assign(new Error('x'), {
      errno: -constants.errno.ENOSPC,
      code: 'ENOSPC',
      syscall: 'write',
    });
    expect(formatSystemError(error, '/srv')).toBe("ENOSPC: no space left on device, write '/srv'");
  });
});

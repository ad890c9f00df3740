/** Mounts a file over itself. Needs Linux with user namespaces. */
import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { useServiceHome } from '../support/service-process';
import { execute } from '../support/sqlite';

/** Wraps a command so that the file is a mount point. Works only on Linux with user namespaces. */
// prettier-ignore
const mountFile = (file: string): string[] => [
  'unshare', '-rm', 'sh', '-c',
  'mount --bind "$0" "$0" && exec "$@"', file,
];

describe('the service on a database file that is a mount point', () => {
  const home = useServiceHome();

  it.each(['plants.db', 'my plants\\1.db'])('does not start (%s)', async (name) => {
    const file = `${dirname(home.file)}/${name}`;
    mkdirSync(dirname(file));
    execute(file, 'VACUUM');

    const service = home.spawn({ DATABASE_URL: `sqlite:${file}` }, mountFile(file));

    expect(await service.ended).toEqual({ code: 1, signal: null });
    expect(service.stderr).toMatch(
      /^DATABASE_URL names the file .*\.db, which cannot be used: it is a mount point of its own, .*: mount the directory instead\.\n$/,
    );
  });
});

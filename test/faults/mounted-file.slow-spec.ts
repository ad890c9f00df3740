import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { useServiceHome } from '../support/service-process';
import { execute } from '../support/sqlite';

/** Runs a program where the file of its first argument is a mount point. Linux with user namespaces only. */
// prettier-ignore
const mounted = (file: string): string[] => [
  'unshare', '-rm', 'sh', '-c',
  'mount --bind "$0" "$0" && exec "$@"', file,
];

describe('the service on a database file that is a mount point', () => {
  const home = useServiceHome();

  it.each(['plants.db', 'my plants\\1.db'])('does not start (%s)', async (name) => {
    const file = `${dirname(home.file)}/${name}`;
    mkdirSync(dirname(file));
    execute(file, 'VACUUM');

    const service = home.begin({ DATABASE_URL: `sqlite:${file}` }, mounted(file));

    expect(await service.ended).toEqual({ code: 1, signal: null });
    expect(service.stderr).toMatch(
      /^DATABASE_URL names the file .*\.db, which cannot be used: it is a mount point of its own, .*: mount the directory instead\.\n$/,
    );
  });
});

/** Runs `token create` as a process. */
import { readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { hashToken, openTokenFile } from '../../src/plants/auth/token-list';
import { useFolder } from '../support/folder';
import { plantStore } from '../support/plant-store';
import type { RunResult } from '../support/run';

describe('token create', () => {
  const folder = useFolder();
  const file = join(folder, 'tokens.txt');
  const create = (options: string, environment: NodeJS.ProcessEnv = {}): Promise<RunResult> =>
    plantStore(['token', 'create', ...options.split(' ')], environment, { cwd: folder });
  const findCaller = (token: string) =>
    openTokenFile(file).current.verify(hashToken(token))?.caller.name;

  it('prints a new token and adds its digest to a file that only its owner can read', async () => {
    const { stdout, stderr } = await create('--file tokens.txt');

    expect(stdout).toMatch(/^[\w-]{43}\n$/);
    expect(stderr).toBe('');
    expect(readFileSync(file, 'utf8')).toMatch(/^sha256:[0-9a-f]{64}\n$/);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(findCaller(stdout.trim())).toBe('line 1');
  });

  it.each(['90d', '129600m'])('writes the name, expiry in %s, and scope', async (expires) => {
    const start = Date.now();
    const options = `--name ci --expires ${expires} --scope create`;
    const { stdout } = await create(options, { AUTH_TOKENS_FILE: file });

    const [, , name, time = ''] =
      /^(sha256:\w+) (\S+) (\S+) scope=create\n$/.exec(readFileSync(file, 'utf8')) ?? [];
    expect(name).toBe('ci');
    expect(time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
    expect((Date.parse(time) - start) / 86_400_000).toBeCloseTo(90, 2);
    expect(findCaller(stdout.trim())).toBe('ci');
  });

  it('keeps the other lines of the file, and follows a symbolic link to it', async () => {
    const before = '# mine\r\nold laptop # of May';
    writeFileSync(join(folder, 'elsewhere'), before, { mode: 0o640 });
    symlinkSync('elsewhere', file);

    const { stdout } = await create(`--file ${file}`);

    expect(readFileSync(join(folder, 'elsewhere'), 'utf8')).toMatch(
      /^# mine\r\nold laptop # of May\nsha256:\w{64}\n$/,
    );
    expect(statSync(file).mode & 0o777).toBe(0o640);
    expect([findCaller('old'), findCaller(stdout.trim())]).toEqual(['laptop', 'line 3']);
  });

  it('keeps every token when several commands run at once', async () => {
    const outcomes = await Promise.all(Array.from({ length: 3 }, () => create(`--file ${file}`)));

    const callers = outcomes.map(({ stdout }) => findCaller(stdout.trim()));
    expect(callers.toSorted()).toEqual(['line 1', 'line 2', 'line 3']);
  });

  it.each([
    ['tokens.txt', /^The token file tokens\.txt is invalid: line 2 must be a token .*\.\n$/],
    ['/nope/tokens.txt', /^ENOENT: no such file or directory, open '\/nope\/tokens\.txt'\n$/],
  ])('rejects the file %s with an error message, and changes no file', async (name, sentence) => {
    writeFileSync(file, 'valid\nnot valid at all\n');

    const { code, stdout, stderr } = await create(`--file ${name}`);

    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toMatch(sentence);
    expect(readFileSync(file, 'utf8')).toBe('valid\nnot valid at all\n');
  });
});

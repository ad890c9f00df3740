import { existsSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { BearerToken } from '../../src/plants/auth/bearer-token';
import { TokenFile } from '../../src/plants/auth/token-file';
import { useFolder } from '../support/folder';
import { programEnvironment } from '../support/run-folder';
import { type Run, run as runProgram } from '../support/run';

const PROGRAM = join(__dirname, '../../dist/program/plant-store.js');

describe('plant-store', () => {
  const folder = useFolder();
  const file = join(folder, 'tokens.txt');

  function run(args: string[], environment: NodeJS.ProcessEnv = {}): Promise<Run> {
    const env = { ...programEnvironment(), ...environment };
    return runProgram(process.execPath, [PROGRAM, ...args], { cwd: folder, env });
  }

  const callerOf = (token: string) =>
    new TokenFile(file).verify(new BearerToken(token))?.caller.name;

  describe('token create', () => {
    it('prints a new token and adds its digest to a file that only its owner can read', async () => {
      const { stdout, stderr } = await run(['token', 'create', '--file', 'tokens.txt']);

      expect(stdout).toMatch(/^[\w-]{43}\n$/);
      expect(stderr).toBe('');
      expect(readFileSync(file, 'utf8')).toMatch(/^sha256:[0-9a-f]{64}\n$/);
      expect(statSync(file).mode & 0o777).toBe(0o600);
      expect(callerOf(stdout.trim())).toBe('line 1');
    });

    it('adds a name, an expiry and a scope', async () => {
      const start = Date.now();
      const args = 'token create --name ci --expires 90d --scope create'.split(' ');
      const { stdout } = await run(args, { AUTH_TOKENS_FILE: file });

      const [, , name, time = ''] =
        /^(sha256:\w+) (\S+) (\S+) scope=create\n$/.exec(readFileSync(file, 'utf8')) ?? [];
      expect(name).toBe('ci');
      expect(time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
      expect((Date.parse(time) - start) / 86_400_000).toBeCloseTo(90, 2);
      expect(callerOf(stdout.trim())).toBe('ci');
    });

    it('keeps the content and the place of the file', async () => {
      const before = '# mine\r\nold laptop # of May';
      writeFileSync(join(folder, 'elsewhere'), before, { mode: 0o640 });
      symlinkSync('elsewhere', file);

      const { stdout } = await run(['token', 'create', '--file', file]);

      expect(readFileSync(join(folder, 'elsewhere'), 'utf8')).toMatch(
        /^# mine\r\nold laptop # of May\nsha256:\w{64}\n$/,
      );
      expect(statSync(file).mode & 0o777).toBe(0o640);
      expect([callerOf('old'), callerOf(stdout.trim())]).toEqual(['laptop', 'line 3']);
    });

    it('keeps every token when several are created at once', async () => {
      const outcomes = await Promise.all(
        Array.from({ length: 5 }, () => run(['token', 'create', '--file', file])),
      );

      const callers = outcomes.map(({ stdout }) => callerOf(stdout.trim()));
      expect(callers.toSorted()).toEqual(['line 1', 'line 2', 'line 3', 'line 4', 'line 5']);
    });

    it('refuses an invalid file, and names the line', async () => {
      writeFileSync(file, 'valid\nnot valid at all\n');

      const { code, stdout, stderr } = await run(['token', 'create', '--file', 'tokens.txt']);

      expect([code, stdout]).toEqual([1, '']);
      expect(stderr).toMatch(
        /^The token file tokens\.txt is invalid: line 2 has an invalid field: .*\.\n$/,
      );
      expect(readFileSync(file, 'utf8')).toBe('valid\nnot valid at all\n');
    });

    it('says that the directory of the file does not exist', async () => {
      const outcome = await run(['token', 'create', '--file', '/nope/tokens.txt']);

      const sentence = 'There is no directory /nope. Name a file in one that exists.\n';
      expect(outcome).toEqual({ code: 1, stdout: '', stderr: sentence });
    });

    const name = '--name must be a letter, then up to 63 letters, digits or _.@-';
    const expires = '--expires must be a number of hours or days, such as 12h or 90d.';
    const help = '(use --help to see the valid commands and options)';

    it.each([
      ['', 'Name the file with --file, or set AUTH_TOKENS_FILE.'],
      ['--file=f --name=2027', name],
      ['--file=f --name=', name],
      ['--file=f --expires=90', expires],
      ['--file=f --expires=', expires],
      ['--expire 90d', `error: unknown option '--expire'\n(Did you mean --expires?)\n${help}`],
      [
        '--file=f ci',
        `error: too many arguments for 'create'. Expected 0 arguments but got 1: ci.\n${help}`,
      ],
      [
        '--file=f --scope=read',
        `error: option '--scope <scope...>' argument 'read' is invalid. Allowed choices are create, metrics.\n${help}`,
      ],
    ])('refuses %j with a sentence', async (args, sentence) => {
      const outcome = await run(`token create ${args}`.trim().split(' '));

      expect(outcome).toEqual({ code: 2, stdout: '', stderr: `${sentence}\n` });
      expect(existsSync(join(folder, 'f'))).toBe(false);
    });
  });

  const badPort = { code: 1, stderr: 'PORT must be a port from 0 to 65535\n' };

  it('serves with the variables of a file', async () => {
    writeFileSync(join(folder, 'service.env'), 'PORT=x\nDOCS=x\n');
    const args = ['serve', '--env-file', 'service.env'];

    expect(await run(args, { DOCS: 'true' })).toMatchObject(badPort);
  });

  it.each(['--env-file nowhere', '--env-file=nowhere'])(
    'ends with a sentence, of Node.js or of its own, with %s',
    async (args) => {
      const { code, stdout, stderr } = await run(['serve', ...args.split(' ')]);

      expect(code).toBeGreaterThan(0);
      expect(stdout).toBe('');
      expect(stderr).toMatch(/^.*nowhere.*not found.*\n$|^.*nowhere.*no such file.*\n$/);
    },
  );

  it.each([[[]], [['serve']]])('serves when it is called as %j', async (args) => {
    expect(await run(args, { PORT: 'x' })).toMatchObject(badPort);
  });
});

import { accessSync, constants } from 'node:fs';
import { join } from 'node:path';
import { programEnvironment } from '../support/run-folder';
import { type Run, run } from '../support/run';
import { useFolder } from '../support/folder';

const PROGRAM = join(__dirname, '../../dist/program/plant-store.js');

const plantStore = (...args: string[]): Promise<Run> =>
  run(process.execPath, [PROGRAM, ...args], { env: programEnvironment() });

const FILE = `sqlite:${join(useFolder(), 'plants.db')}`;

describe('the command line', () => {
  it('is executable after a build', () => {
    expect(() => {
      accessSync(PROGRAM, constants.X_OK);
    }).not.toThrow();
  });

  it('prints all commands with --help', async () => {
    const { code, stdout, stderr } = await plantStore('--help');

    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toBe(`Usage: plant-store [options] [command]

Takes plant records over HTTP and stores them exactly and durably.

Options:
  -v, --version     print the version
  -h, --help        print this help

Commands:
  serve [options]   run the service; this is the default command
  export [file]     write all plants to a file
  import [file]     store the plants of a file
  backup <file>     copy the store to a file
  restore <file>    replace the store with a backup
  check [options]   check the settings, the store and the tokens
  health [options]  ask the running service whether it is live or ready
  token             create tokens
  help [command]    print the help of a command
`);
  });

  it.each(['-v', '--version'])('prints its version with %s', async (option) => {
    expect(await plantStore(option)).toEqual({ code: 0, stdout: '1.0.0\n', stderr: '' });
  });

  it('prints the help of a command with help, as with --help', async () => {
    const help = await plantStore('help', 'import');
    const option = await plantStore('import', '--help');

    expect(help.stdout).toMatch(/^Usage: plant-store import \[options\] \[file\]\n/);
    expect(help).toEqual(option);
  });

  const usage = '(use --help to see the valid commands and options)';

  it.each([
    [['serve', '--port', '1'], 'Set the environment variable PORT instead.'],
    [['serve', '--host=::'], 'Set the environment variable HOST instead.'],
    [['--port', '1'], 'Set the environment variable PORT instead.'],
    [['serve', '--level', '1'], `error: unknown option '--level'\n${usage}`],
    [['sevre'], `error: unknown command 'sevre'\n(Did you mean serve?)\n${usage}`],
    [['frob'], `error: unknown command 'frob'\n${usage}`],
    [['token', 'crate'], `error: unknown command 'crate'\n(Did you mean create?)\n${usage}`],
    [['export', '--output', 'x'], `error: unknown option '--output'\n${usage}`],
    [['check', '--deep', '--deep'], `error: option '--deep' is given twice\n${usage}`],
    [
      ['token', 'create', '--file=a', '--file', 'b'],
      `error: option '--file <path>' is given twice\n${usage}`,
    ],
  ])('ends with 2 and a sentence when it is called as %j', async (args, sentence) => {
    expect(await plantStore(...args)).toEqual({ code: 2, stdout: '', stderr: `${sentence}\n` });
  });

  it.each([
    [
      { AUTH_TOKENS_FILE: '/nope/tokens.txt' },
      'The token file /nope/tokens.txt cannot be used: it does not exist; "plant-store token create" makes it (AUTH_TOKENS_FILE).',
    ],
    [
      { CORS_ORIGINS: 'https://a.example, https://b.example/' },
      'CORS_ORIGINS must be a list of origins such as https://app.example.org, without path and wildcards, separated by commas or white space; "https://b.example/" ends with a slash',
    ],
  ])('serve says what is wrong with %j', async (environment, sentence) => {
    const env = { ...programEnvironment(), PORT: '0', DATABASE_URL: FILE, ...environment };
    const { code, stderr } = await run(process.execPath, [PROGRAM, 'serve'], { env });

    expect([code, stderr]).toEqual([1, `${sentence}\n`]);
  });
});

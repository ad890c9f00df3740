import { accessSync, constants } from 'node:fs';
import { join } from 'node:path';
import { programEnvironment } from '../support/run-folder';
import { type Run, run } from '../support/run';

const PROGRAM = join(__dirname, '../../dist/program/plant-store.js');
/** The program before it is bundled, which shows what it loads. */
const UNBUNDLED = join(__dirname, '../../dist/plant-store.js');

/** Prints, at the end of a process, every file that it loaded. */
const LIST_LOADED = `data:text/javascript,${encodeURIComponent(`
  import { registerHooks } from 'node:module';
  const loaded = [];
  registerHooks({
    load(url, context, next) {
      loaded.push(url);
      return next(url, context);
    },
  });
  process.on('exit', () => process.stderr.write(loaded.join('\\n')));
`)}`;

const plantStore = (...args: string[]): Promise<Run> =>
  run(process.execPath, [PROGRAM, ...args], { env: programEnvironment() });

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
  -V, --version            print the version
  -h, --help               print this help

Commands:
  serve [options]          run the service; this is the default command
  export [options]         write all plants to a file
  import [options] [file]  store the plants of a file
  backup <file>            copy the store to a file
  restore <file>           replace the store with a backup
  check [options]          check the settings, the store and the tokens
  health [options]         ask the running service whether it is live or ready
  token                    create tokens
`);
  });

  it('prints its version', async () => {
    expect(await plantStore('--version')).toEqual({ code: 0, stdout: '1.0.0\n', stderr: '' });
  });

  it.each([['--help'], ['--version'], ['token', 'create', '--help']])(
    'loads no part of the service for %j',
    async (...args) => {
      const { stderr } = await run(
        process.execPath,
        ['--import', LIST_LOADED, UNBUNDLED, ...args],
        {
          env: programEnvironment(),
        },
      );

      expect(stderr).not.toMatch(/dist\/(?:auth|config|data|plants|server)\//);
    },
  );

  it.each([
    [['serve', '--port', '1'], "error: unknown option '--port'"],
    [['serv'], "error: unknown command 'serv'"],
    [['token', 'make'], "error: unknown command 'make'"],
  ])('ends with 2 and a sentence when it is called as %j', async (args, sentence) => {
    expect(await plantStore(...args)).toEqual({
      code: 2,
      stdout: '',
      stderr: `${sentence}\n(use --help to see the valid commands and options)\n`,
    });
  });
});

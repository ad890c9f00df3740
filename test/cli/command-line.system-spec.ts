/**
 * Runs the program with each command: its help, its exit codes, and an output that cannot be written. Some tests need
 * Linux.
 */
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { Command } from 'commander';
import { version } from '../../package.json';
import { createProgram } from '../../src/cli/commands';
import { TOKEN } from '../support/application';
import { makeFolder, removeFolder, useFolder } from '../support/folder';
import { CLI_PATH, plantStore } from '../support/plant-store';
import { describeOnLinux, type RunResult, shell } from '../support/run';

/** The arguments of the commands that need some. */
const ARGUMENTS: Partial<Record<string, string>> = {
  backup: 'copy.db',
  restore: 'backup.db',
  'token create': '--file tokens.txt',
};

/** The commands that write only to standard error, or to files. */
const SILENT = ['import', 'backup', 'restore'];

/** The commands that create a missing store. */
const CREATING = ['serve', 'import', 'restore'];

/** The commands that need no store. */
const WITHOUT_STORE = ['health', 'token create'];

/** Returns the names of the commands that have no subcommands, such as `token create`. */
function namesOf(commands: readonly Command[]): string[] {
  return commands.flatMap((command) => {
    const names = namesOf(command.commands);
    return names.length > 0 ? names.map((name) => `${command.name()} ${name}`) : command.name();
  });
}

const COMMANDS = namesOf(createProgram().commands);

/** The commands and options that print to standard output. `logs.system-spec.ts` tests the log of `serve`. */
const PRINTING = [...COMMANDS, '--help', '--version'].filter(
  (name) => name !== 'serve' && !SILENT.includes(name),
);

describe('the command line', () => {
  const folder = useFolder();

  it.each(['-v', '--version'])('prints its version with %s', async (option) => {
    expect(await plantStore([option])).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' });
  });

  const help = '(use --help to see the valid commands and options)';

  const names = createProgram().commands.map((command) => command.name());
  const commands = `The commands are: ${names.join(', ')}.`;

  it.each([
    // Node.js reads `--env-file` itself.
    ['check --env-file service.env', `error: unknown option '--env-file'\n${help}`],
    ['--port 1', `error: unknown option '--port'\n${help}`],
    ['sevre', `error: unknown command 'sevre'. ${commands}\n${help}`],
    ['frobnicate --deep', `error: unknown command 'frobnicate'. ${commands}\n${help}`],
    [
      'serve x',
      `error: too many arguments for 'serve'. Expected 0 arguments but got 1: x.\n${help}`,
    ],
    [
      '--settings service.env check',
      `error: too many arguments for 'serve'. Expected 0 arguments but got 1: check.\n${help}\nWrite the command before its options.`,
    ],
    ['token creat', `error: unknown command 'creat'. The commands are: create.\n${help}`],
    ['token create', 'Pass the token file with --file, or set AUTH_TOKENS_FILE.'],
    [
      'token create --name=2027',
      '--name must be a letter followed by up to 63 letters, digits or _.@- characters.',
    ],
    [
      'token create --expires=90w',
      '--expires must be a duration above zero and up to 36500 days: seconds, or a number with the unit ms, s, m, h or d.',
    ],
  ])('exits with code 2 and one error message for %j', async (line, sentence) => {
    writeFileSync(join(folder, 'service.env'), '');
    const outcome = await plantStore(line.split(' '), {}, { cwd: folder });

    expect(outcome).toEqual({ code: 2, stdout: '', stderr: `${sentence}\n` });
  });

  const badPort = { code: 1, stderr: 'PORT must be a port from 0 to 65535.\n' };

  it.each([[[]], [['serve']]])('starts the service for %j', async (args) => {
    expect(await plantStore(args, { PORT: 'x' })).toMatchObject(badPort);
  });

  it('reads variables from --settings; environment variables take precedence', async () => {
    const file = join(folder, 'service.env');
    writeFileSync(file, 'PORT=x\nDOCS=x\n');

    const outcome = await plantStore(['--settings', file], { DOCS: 'true' });

    expect(outcome).toMatchObject(badPort);
  });

  it('exits with code 1 when the file of --settings does not exist', async () => {
    expect(await plantStore(['check', '--settings', '/nope'])).toEqual({
      code: 1,
      stdout: '',
      stderr: '--settings /nope cannot be read: no such file or directory.\n',
    });
  });

  it('reads the store of each command from --settings', async () => {
    const file = join(folder, 'service.env');
    writeFileSync(
      file,
      `DATABASE_URL=sqlite:${join(folder, 'own.db')}\nAUTH_TOKENS_FILE=tokens.txt\n`,
    );
    const run = (line: string) =>
      plantStore(`${line} --settings ${file}`.split(/ +/), {}, { cwd: folder });

    const results = [await run('token create'), await run('import'), await run('backup backup.db')];
    const others = COMMANDS.filter((name) => ![...WITHOUT_STORE, 'serve'].includes(name));
    for (const name of others) results.push(await run(`${name} ${ARGUMENTS[name] ?? ''}`.trim()));

    expect(results.map(({ code }) => code)).toEqual(results.map(() => 0));
    expect(
      readdirSync(folder)
        .filter((name) => !/before|-shm/.test(name))
        .toSorted(),
    ).toEqual(['backup.db', 'copy.db', 'own.db', 'service.env', 'tokens.txt']);
  });

  it.each(COMMANDS.filter((name) => !CREATING.includes(name)))(
    '%s does not create a missing store',
    async (name) => {
      const args = `${name} ${ARGUMENTS[name] ?? ''}`.trim().split(' ');
      const { code } = await plantStore(
        args,
        { DATABASE_URL: 'sqlite:missing/plants.db' },
        { cwd: folder },
      );

      expect(code).toBeLessThanOrEqual(1);
      expect(existsSync(join(folder, 'missing'))).toBe(false);
    },
  );

  describeOnLinux(() => {
    const directory = makeFolder();
    const environment = { DATABASE_URL: 'sqlite:plants.db', AUTH_TOKENS: TOKEN };
    let server: Server;
    beforeAll(async () => {
      await plantStore(['import'], environment, { cwd: directory, input: '{"id":1,"name":"x"}' });
      await plantStore(['backup', 'backup.db'], environment, { cwd: directory });
      server = createServer((_request, response) => response.end()).listen(0);
    });
    afterAll(() => {
      server.close();
      removeFolder(directory);
    });

    /**
     * Runs a command next to a store, its backup, an empty token file and a healthy service.
     * @param output lines of a shell that open the file descriptor 3, the standard output of the command
     */
    function runWithOutput(command: string, output: string): Promise<RunResult> {
      rmSync(join(directory, 'copy.db'), { force: true });
      writeFileSync(join(directory, 'tokens.txt'), '');
      const { port } = server.address() as AddressInfo;
      const line = `${command} ${ARGUMENTS[command] ?? ''}`;
      return shell(`${output}\n"${process.execPath}" "${CLI_PATH}" ${line} >&3 </dev/null`, {
        cwd: directory,
        env: { ...environment, PORT: String(port) },
      });
    }

    it.each(PRINTING)(
      'exits with code 1 when the output of %s finds a full disk',
      async (command) => {
        const { code, stderr } = await runWithOutput(command, 'exec 3>/dev/full');

        expect([code, stderr]).toEqual([1, expect.stringMatching(/^[^\n]*ENOSPC[^\n]*\n$/)]);
        expect(readFileSync(join(directory, 'tokens.txt'), 'utf8')).toBe('');
      },
    );

    it.each(PRINTING)(
      'exits with code 1 and no stack trace when the output of %s is a closed pipe',
      async (command) => {
        // The pipe is opened for reading, then for writing, and its reading end is closed before the command starts.
        const { code, stderr } = await runWithOutput(
          command,
          'rm -f pipe; mkfifo pipe; exec 4<>pipe 3>pipe 4>&-',
        );

        expect([code, stderr]).toEqual([1, expect.stringMatching(/^(?:[^\n]*EPIPE[^\n]*\n)?$/)]);
        expect(readFileSync(join(directory, 'tokens.txt'), 'utf8')).toBe('');
      },
    );

    it.each(SILENT)('%s writes nothing to standard output', async (command) => {
      const { code, stderr } = await runWithOutput(command, 'exec 3>/dev/full');

      expect([code, stderr]).toEqual([0, expect.not.stringContaining('ENOSPC')]);
    });
  });
});

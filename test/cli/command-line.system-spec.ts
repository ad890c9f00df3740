import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { version } from '../../package.json';
import { TOKEN } from '../support/application';
import { useFolder } from '../support/folder';
import { CLI_PATH, plantStore } from '../support/plant-store';
import { describeOnLinux, shell } from '../support/run';

describe('the command line', () => {
  const folder = useFolder();

  it.each(['-v', '--version'])('prints its version with %s', async (option) => {
    expect(await plantStore([option])).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' });
  });

  const help = '(use --help to see the valid commands and options)';

  const commands =
    'The commands are: serve, export, import, backup, restore, check, health, token.';

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
    const copy = join(folder, 'copy.db');
    writeFileSync(
      file,
      `DATABASE_URL=sqlite:${join(folder, 'own.db')}\nAUTH_TOKENS_FILE=tokens.txt\n`,
    );
    const run = (line: string) => plantStore(line.split(' '), {}, { cwd: folder });

    const created = await run(`token create --settings ${file}`);
    const imported = await run(`import --settings=${file}`);
    const others: unknown[] = [];
    for (const command of ['export', 'check', `backup ${copy}`, `restore ${copy}`]) {
      others.push((await run(`${command} --settings ${file}`)).code);
    }

    expect([created.code, imported.code, ...others]).toEqual([0, 0, 0, 0, 0, 0]);
    expect(
      readdirSync(folder)
        .filter((name) => !/before|-shm/.test(name))
        .toSorted(),
    ).toEqual(['copy.db', 'own.db', 'service.env', 'tokens.txt']);
  });

  describeOnLinux(() => {
    it.each(['export', 'check', 'health', 'token create --file tokens.txt', '--help', '--version'])(
      'exits with code 1 when the output of %s cannot be written',
      async (command) => {
        writeFileSync(join(folder, 'tokens.txt'), '');
        const environment = { DATABASE_URL: 'sqlite:plants.db', AUTH_TOKENS: TOKEN };
        await plantStore(['import'], environment, { cwd: folder, input: '{"id":1,"name":"x"}' });
        const server = createServer((_request, response) => response.end()).listen(0);
        const { port } = server.address() as AddressInfo;

        const { code, stderr } = await shell(
          `"${process.execPath}" "${CLI_PATH}" ${command} >/dev/full`,
          { cwd: folder, env: { ...environment, PORT: String(port) } },
        );
        server.close();

        expect([code, stderr]).toEqual([1, expect.stringMatching(/^[^\n]*ENOSPC[^\n]*\n$/)]);
        expect(readFileSync(join(folder, 'tokens.txt'), 'utf8')).toBe('');
      },
    );
  });
});

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { version } from '../../package.json';
import { useFolder } from '../support/folder';
import { plantStore } from '../support/plant-store';

describe('the command line', () => {
  const folder = useFolder();

  it('prints all commands with --help', async () => {
    const { code, stdout } = await plantStore(['--help']);

    const commands = stdout.match(/(?<=^ {2})\w.*?(?= {2})/gm);
    expect(code).toBe(0);
    // prettier-ignore
    expect(commands).toEqual([
      'serve [options]', 'export [file]', 'import [file]', 'backup <file>', 'restore <file>',
      'check [options]', 'health [options]', 'token', 'help [command]',
    ]);
  });

  it.each(['-v', '--version'])('prints its version with %s', async (option) => {
    expect(await plantStore([option])).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' });
  });

  const help = '(use --help to see the valid commands and options)';

  it.each([
    ['--port 1', `error: unknown option '--port'\n${help}`],
    ['sevre', `error: unknown command 'sevre'\n(Did you mean serve?)\n${help}`],
    ['check --deep --deep', `error: option '--deep' was given more than once\n${help}`],
    ['token create', 'Pass the token file with --file, or set AUTH_TOKENS_FILE.'],
    [
      'token create --name=2027',
      '--name must be a letter followed by up to 63 letters, digits or _.@- characters.',
    ],
    [
      'token create --expires=90',
      '--expires must be a number of hours or days, such as 12h or 90d.',
    ],
    [
      'token create --expire 90d',
      `error: unknown option '--expire'\n(Did you mean --expires?)\n${help}`,
    ],
    [
      'token create --file=f ci',
      `error: too many arguments for 'create'. Expected 0 arguments but got 1: ci.\n${help}`,
    ],
    [
      'token create --file=f --file f',
      `error: option '--file <path>' was given more than once\n${help}`,
    ],
  ])('exits with code 2 and one error message for %j', async (line, sentence) => {
    const outcome = await plantStore(line.split(' '), {}, { cwd: folder });

    expect(outcome).toEqual({ code: 2, stdout: '', stderr: `${sentence}\n` });
  });

  const badPort = { code: 1, stderr: 'PORT must be a port from 0 to 65535\n' };

  it.each([[[]], [['serve']]])('starts the service for %j', async (args) => {
    expect(await plantStore(args, { PORT: 'x' })).toMatchObject(badPort);
  });

  it('reads variables from --env-file; environment variables take precedence', async () => {
    const file = join(folder, 'service.env');
    writeFileSync(file, 'PORT=x\nDOCS=x\n');

    const outcome = await plantStore(['--env-file', file], { DOCS: 'true' });

    expect(outcome).toMatchObject(badPort);
  });

  it('names AUTH_TOKENS_FILE when the file does not exist, and says how to create it', async () => {
    const outcome = await plantStore(['serve'], { AUTH_TOKENS_FILE: '/nope/tokens.txt' });

    const sentence =
      'auth.tokensFile names the file /nope/tokens.txt, which cannot be used: it does not exist; create it with "plant-store token create" (AUTH_TOKENS_FILE).';
    expect(outcome).toMatchObject({ code: 1, stderr: `${sentence}\n` });
  });

  it('names DATABASE_URL_FILE once when the store at its URL cannot be used', async () => {
    const file = join(folder, 'garbage.db');
    writeFileSync(file, 'garbage');
    writeFileSync(join(folder, 'url'), `sqlite:${file}`);

    const { stdout, stderr } = await plantStore(['serve'], {
      DATABASE_URL_FILE: join(folder, 'url'),
    });

    expect(stderr).toMatch(`DATABASE_URL_FILE names the file ${file}, which cannot be used: `);
    expect(stdout).not.toContain('cannot be used');
  });
});

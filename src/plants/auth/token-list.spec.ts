import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { hashToken, openTokenFile, parseTokenList } from './token-list';
import { InvalidTokenError } from '../errors/errors';
import { restoreClock, stopClock } from '../../../test/support/clock';
import { useFolder } from '../../../test/support/folder';
import { useLog } from '../../../test/support/log';
import { until } from '../../../test/support/until';

describe('openTokenFile', () => {
  const { lines } = useLog();
  const folder = useFolder();
  const file = join(folder, 'tokens.txt');
  let verifier: ReturnType<typeof openTokenFile> | undefined;
  afterEach(() => {
    verifier?.stop();
    verifier = undefined;
    restoreClock();
    jest.restoreAllMocks();
  });

  function loadTokens(content: string): void {
    writeFileSync(file, content);
    verifier = openTokenFile(file);
  }

  const findCaller = (token: string) => verifier?.current.verify(hashToken(token))?.caller.name;

  it.each<[string, Record<string, string | undefined>]>([
    [
      `a\nsha256:${hashToken('b').toUpperCase()} ci\nc+/~==\t2096-02-29T00:00:00.5+02:00`,
      { a: 'line 1', b: 'ci', 'c+/~==': 'line 3', d: undefined, [hashToken('b')]: undefined },
    ],
    ['\ufeff# tokens\r\n\n  a  ci # since May\r\n#b', { a: 'ci', b: undefined }],
    ['a\n# old:\rb\n# old:\u2028c', { a: 'line 1', b: undefined, c: undefined }],
    ['a first\na last', { a: 'last' }],
  ])('finds the callers in the file %j', (content, callers) => {
    loadTokens(content);

    for (const [token, caller] of Object.entries(callers)) expect(findCaller(token)).toBe(caller);
  });

  it('warns about short tokens, with their line numbers', () => {
    loadTokens(`short ci\nsha256:${hashToken('digest')}\n${'x'.repeat(16)}\n${'y'.repeat(15)}`);

    expect(lines).toEqual([
      expect.stringMatching(/^warn The token file .* can be guessed, .* \(line 1, line 4\): /),
    ]);
  });

  it('rejects a short token in production, also in a list and in a changed file', async () => {
    loadTokens(`sha256:${hashToken('digest')}\n${'x'.repeat(16)} ci`);
    verifier?.start();
    jest.replaceProperty(process.env, 'NODE_ENV', 'production');
    writeFileSync(file, `${'x'.repeat(16)} ci\n${'y'.repeat(15)}`);
    await until(() => lines.length > 0);

    const message = 'is a token that can be guessed, because it has fewer than 16 characters: ';
    expect(lines).toEqual([expect.stringMatching(`cannot be used: line 2 ${message}`)]);
    expect(findCaller('x'.repeat(16))).toBe('ci');
    expect(() => openTokenFile(file)).toThrow(message);
    expect(() => parseTokenList(['x'.repeat(16), 'a'])).toThrow(`token 2 ${message}`);
  });

  it('accepts a token until it expires', () => {
    stopClock();
    jest.setSystemTime(new Date('2027-01-31T11:59:59.999Z'));
    loadTokens('a ci 2027-01-31T12:00:00Z');
    expect(findCaller('a')).toBe('ci');

    jest.setSystemTime(new Date('2027-01-31T12:00:00Z'));

    expect(() => findCaller('a')).toThrow(new InvalidTokenError('The token has expired.'));
  });

  it.each([
    'sécret',
    'secret#7secret ci',
    'secret ci#1',
    'sha256:secret',
    'secret 7secret',
    'secret 2027-01-31',
    'secret ci 2027-13-01T12:00:00Z',
    'secret 2027-01-31T12:00:00Z ci',
    // prettier-ignore
    ...[
      '2027-02-30T00:00:00Z', '2027-02-29T12:00:00+02:00', '2027-11-31T00:00:00Z',
      '2027-04-30T24:00:00Z', '2027-04-00T00:00:00Z',
    ].map((time) => `secret ci ${time}`),
    'scope=create',
    'scope= ci',
    'metrics ci',
    'secret scope=secret',
    'secret scope=create ci',
  ])('rejects a file with the line %j without showing it', (line) => {
    writeFileSync(file, `a\n${line}\n`);

    expect(() => openTokenFile(file)).toThrow(
      /^auth\.tokensFile names the file .*, which cannot be used: line 2 must (?!.*secret)/,
    );
  });

  it('rejects a file that does not exist, is not UTF-8, or is a folder', () => {
    const binary = join(folder, 'binary');
    writeFileSync(binary, Buffer.from([0x61, 0xff]));

    expect(() => openTokenFile(file)).toThrow(/, which cannot be used: it does not exist/);
    expect(() => openTokenFile(binary)).toThrow(/, which cannot be used: it is not UTF-8/);
    expect(() => openTokenFile(folder)).toThrow(/, which cannot be used: it is not a regular file/);
  });
});

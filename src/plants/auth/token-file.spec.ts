import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { BearerToken, hashToken } from './bearer-token';
import { openTokenFile } from './token-file';
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
  });

  function loadTokens(content: string): void {
    writeFileSync(file, content);
    verifier = openTokenFile(file);
  }

  const findCaller = (token: string) =>
    verifier?.current.verify(new BearerToken(token))?.caller.name;

  describe('valid content', () => {
    it('parses one token or digest per line, with an optional name and expiry', () => {
      loadTokens(`a\nsha256:${hashToken('b')} ci\nc+/~==\t2100-01-01t00:00:00.5+02:00`);

      expect(['a', 'b', 'c+/~=='].map(findCaller)).toEqual(['line 1', 'ci', 'line 3']);
      expect(findCaller('d')).toBeUndefined();
      expect(findCaller(`sha256:${hashToken('b')}`)).toBeUndefined();
    });

    it.each(['\n', '\r\n'])('ignores comments and empty lines with the line ending %j', (end) => {
      loadTokens(['\ufeff# tokens', '', '  a  ci # since May', '#b'].join(end));

      expect(['a', 'b'].map(findCaller)).toEqual(['ci', undefined]);
    });

    it.each(['\r', '\u2028'])(
      'ignores a token in a comment, even after the separator %j',
      (end) => {
        loadTokens(`a\n# old:${end}b`);

        expect(['a', 'b'].map(findCaller)).toEqual(['line 1', undefined]);
      },
    );

    it('warns about short tokens, with their line numbers', () => {
      loadTokens(`short ci\nsha256:${hashToken('digest')}\n${'x'.repeat(16)}\n${'y'.repeat(15)}`);

      expect(lines).toEqual([
        `warn The token file ${file} has a token that can be guessed, because it has fewer than 16 characters (line 1, line 4): create another one with "plant-store token create".`,
      ]);
    });

    it('accepts a token until it expires', () => {
      stopClock();
      jest.setSystemTime(new Date('2027-01-31T11:59:59.999Z'));
      loadTokens('a ci 2027-01-31T12:00:00Z');
      expect(findCaller('a')).toBe('ci');

      jest.setSystemTime(new Date('2027-01-31T12:00:00Z'));

      expect(() => findCaller('a')).toThrow(new InvalidTokenError('The token has expired.'));
    });
  });

  describe('at startup', () => {
    const badToken =
      'line 2 must begin with a token (letters, digits and -._~+/, with = only at its end) or sha256: and 64 hexadecimal digits';
    const badRest =
      'line 2 has an invalid field: after the token, only a name (a letter, then letters, digits and _.@-), a time of expiry such as 2027-01-31T12:00:00Z, and scope=create or scope=metrics may follow';

    it.each([
      ['a token with an invalid character', 'sécret', badToken],
      ['a comment that would cut off a token', 'secret#7secret ci', badToken],
      ['a comment that would cut off a name', 'secret ci#1', badRest],
      ['a truncated digest', 'sha256:secret', badToken],
      ['a space in the token', 'secret 7secret', badRest],
      ['a date without a time', 'secret 2027-01-31', badRest],
      ['a day that does not exist', 'secret ci 2027-02-30T12:00:00Z', badRest],
      ['the hour 24', 'secret ci 2027-01-01T24:00:00Z', badRest],
      ['time and name in the wrong order', 'secret 2027-01-31T12:00:00Z ci', badRest],
      ['a scope instead of a token', 'scope= ci', badToken],
      ['an unknown scope', 'secret scope=secret', badRest],
      ['a scope before the name', 'secret scope=create ci', badRest],
      [
        'a scope name instead of a token',
        'Metrics ci',
        'line 2 is a scope name, not a token: scopes are written as scope=create scope=metrics',
      ],
      ['a repeated token', 'a', 'line 2 repeats the token of line 1'],
    ])('rejects a file with %s, and reports the line without its token', (_what, line, reason) => {
      writeFileSync(file, `a\n${line}\n`);

      const message = `auth.tokensFile names the file ${file}, which cannot be used: ${reason}.`;
      expect(() => openTokenFile(file)).toThrow(new Error(message));
    });

    it('rejects a file that does not exist, is not UTF-8, or is a folder', () => {
      const binary = join(folder, 'binary');
      writeFileSync(binary, Buffer.from([0x61, 0xff]));

      expect(() => openTokenFile(file)).toThrow(/, which cannot be used: it does not exist/);
      expect(() => openTokenFile(binary)).toThrow(/, which cannot be used: it is not UTF-8/);
      expect(() => openTokenFile(folder)).toThrow(
        /, which cannot be used: it is not a regular file/,
      );
    });
  });

  it('reloads the file when it changes, keeps the last valid tokens, and logs both', async () => {
    loadTokens(`${'a'.repeat(16)} ci`);
    verifier?.start();

    writeFileSync(file, 'secret 7secret');
    await until(() => lines.length > 0);
    expect(findCaller('a'.repeat(16))).toBe('ci');
    expect(verifier?.isValid).toBe(false);
    writeFileSync(file, 'b'.repeat(16));
    await until(() => verifier?.isValid === true);

    expect([findCaller('a'.repeat(16)), findCaller('b'.repeat(16))]).toEqual([undefined, 'line 1']);
    expect(lines).toEqual([
      expect.stringMatching(
        /^error .*: line 1 has an invalid field: (?!.*secret).*\. Keeping the last valid content\.$/,
      ),
      `log The token file ${file}: the change is in use.`,
    ]);
  });
});

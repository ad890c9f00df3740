import { execFileSync } from 'node:child_process';
import { renameSync, symlinkSync, unlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { BearerToken, hashToken } from './bearer-token';
import { TokenFile } from './token-file';
import { InvalidTokenError } from '../errors/errors';
import { advanceClock, restoreClock, stopClock } from '../../../test/support/clock';
import { useFolder } from '../../../test/support/folder';
import { useLog } from '../../../test/support/log';
import { describeOnLinux } from '../../../test/support/run';

describe('TokenFile', () => {
  const { lines } = useLog();
  const folder = useFolder();
  const file = join(folder, 'tokens.txt');
  let verifier: TokenFile | undefined;
  beforeEach(stopClock);
  afterEach(() => {
    verifier?.stop();
    verifier = undefined;
    restoreClock();
  });

  function loadTokens(content: string): void {
    writeFileSync(file, content);
    verifier = new TokenFile(file);
    verifier.start();
  }

  const findCaller = (token: string) => verifier?.verify(new BearerToken(token))?.caller.name;

  /** Lets the verifier read the file again. */
  async function awaitReads(count: number): Promise<void> {
    for (let read = 0; read < count; read++) {
      advanceClock(1000);
      while (jest.getTimerCount() === 0) await new Promise((resolve) => setImmediate(resolve));
    }
  }

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

    it('warns about guessable tokens, with their line numbers', () => {
      const random = 'c0ffee'.padEnd(64, '0');
      loadTokens(
        `# two\nsha256:${hashToken('test')} ci\nsha256:${random}\n${'x'.repeat(16)}\nshort`,
      );

      expect(lines).toEqual([
        `warn The token file ${file} has a token that can be guessed, because it has fewer than 16 characters or is a common word (line 2, line 5): create another one with "plant-store token create".`,
      ]);
    });

    it('accepts a token until it expires', () => {
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
    const scopes = 'scopes are written as scope=create scope=metrics';
    const badRest =
      'line 2 has an invalid field: after the token, only a name (a letter, then letters, digits and _.@-), a time of expiry such as 2027-01-31T12:00:00Z, and scope=create or scope=metrics may follow';

    it.each([
      ['a token with an invalid character', 'sécret', badToken],
      ['a truncated digest', 'sha256:secret', badToken],
      ['a space in the token', 'secret 7secret', badRest],
      ['a date without a time', 'secret 2027-01-31', badRest],
      ['a day that does not exist', 'secret ci 2027-02-30T12:00:00Z', badRest],
      ['the hour 24', 'secret ci 2027-01-01T24:00:00Z', badRest],
      ['time and name in the wrong order', 'secret 2027-01-31T12:00:00Z ci', badRest],
      ['a scope instead of a token', 'scope= ci', badToken],
      ['an unknown scope', 'secret scope=secret', `line 2 has an unknown scope: ${scopes}`],
      [
        'a scope name instead of a token',
        'Metrics ci',
        `line 2 is a scope name, not a token: ${scopes}`,
      ],
      ['a repeated token', 'a', 'line 2 repeats the token of line 1'],
    ])('rejects a file with %s, and reports the line without its token', (_what, line, reason) => {
      writeFileSync(file, `a\n${line}\n`);

      const message = `PlantsModule: "auth.tokensFile" names the file ${file}, which cannot be used: ${reason}.`;
      expect(() => new TokenFile(file)).toThrow(new Error(message));
    });

    const NOT_A_REGULAR_FILE = /, which cannot be used: it is not a regular file/;

    it('rejects a file that does not exist, is not UTF-8, or is a folder', () => {
      const binary = join(folder, 'binary');
      writeFileSync(binary, Buffer.from([0x61, 0xff]));

      expect(() => new TokenFile(file)).toThrow(/, which cannot be used: it does not exist/);
      expect(() => new TokenFile(binary)).toThrow(/, which cannot be used: it is not UTF-8/);
      expect(() => new TokenFile(folder)).toThrow(NOT_A_REGULAR_FILE);
    });

    describeOnLinux(() => {
      it('rejects a pipe', () => {
        const pipe = join(folder, 'pipe');
        execFileSync('mkfifo', [pipe]);

        expect(() => new TokenFile(pipe)).toThrow(NOT_A_REGULAR_FILE);
      });
    });
  });

  describe('after a change of the file', () => {
    /** Returns the log without the warnings about the short tokens of these tests. */
    const withoutWarnings = () => lines.filter((line) => !line.startsWith('warn'));

    it('reloads the file after two equal reads, not while it is being written, and logs that', async () => {
      loadTokens('a\nb\nc\n');

      for (const content of ['', 'd\n', 'd\na\n', 'd\na\nb\n']) {
        writeFileSync(file, content);
        await awaitReads(1);
        expect(['a', 'c', 'd'].map(findCaller)).toEqual(['line 1', 'line 3', undefined]);
      }
      await awaitReads(1);

      expect(['a', 'c', 'd'].map(findCaller)).toEqual(['line 2', undefined, 'line 1']);
      expect(withoutWarnings()).toEqual([
        `log Reloaded the token file ${file}. Number of tokens: 3.`,
      ]);
    });

    it('reloads the file when its symbolic link points to a file with the same size and time, as Kubernetes does', async () => {
      for (const version of ['old', 'new']) {
        writeFileSync(join(folder, version), version);
        utimesSync(join(folder, version), 0, 0);
      }
      symlinkSync('old', file);
      verifier = new TokenFile(file);
      verifier.start();

      symlinkSync('new', `${file}.link`);
      renameSync(`${file}.link`, file);
      await awaitReads(2);

      expect(['old', 'new'].map(findCaller)).toEqual([undefined, 'line 1']);
    });

    it.each([
      ['becomes invalid', 'a\nsecret 7secret\n', /: line 2 has an invalid field: (?!.*secret).*/],
      ['disappears', undefined, /ENOENT.*/],
    ])('keeps the tokens when the file %s, and logs that once', async (_how, content, reason) => {
      loadTokens('a\nb');

      unlinkSync(file);
      if (content !== undefined) writeFileSync(file, content);
      await awaitReads(5);
      expect(['a', 'b'].map(findCaller)).toEqual(['line 1', 'line 2']);
      const line = new RegExp(`^error .*${reason.source}\\. Keeping the last valid tokens\\.$`);
      expect(withoutWarnings()).toEqual([expect.stringMatching(line)]);
      expect(verifier?.isValid).toBe(false);

      writeFileSync(file, 'b');
      await awaitReads(2);
      expect(['a', 'b'].map(findCaller)).toEqual([undefined, 'line 1']);
      expect(verifier?.isValid).toBe(true);
    });
  });
});

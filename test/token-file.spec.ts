import { execFileSync } from 'node:child_process';
import { renameSync, rmSync, symlinkSync, unlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Logger } from '@nestjs/common';
import { BearerToken, TokenFileError, tokenDigest, entryOfDigest } from '../src/auth';
import { TokenFileVerifier } from '../src/auth/token-file.verifier';
import { InvalidTokenError } from '../src/errors';
import { pass, releaseClock, stopClock } from './support/clock';
import { makeFolder, removeFolder } from './support/folder';

const SECOND = 1000;

describe('a token file', () => {
  let folder: string;
  let file: string;
  let verifier: TokenFileVerifier | undefined;
  beforeEach(() => {
    stopClock();
    folder = makeFolder();
    file = join(folder, 'tokens.txt');
  });
  afterEach(() => {
    verifier?.onApplicationShutdown();
    verifier = undefined;
    jest.restoreAllMocks();
    releaseClock();
    removeFolder(folder);
  });

  function follow(content: string | Buffer): void {
    writeFileSync(file, content);
    verifier = new TokenFileVerifier(file);
    verifier.onModuleInit();
  }

  const callerOf = (token: string) => verifier?.verify(new BearerToken(token))?.name;

  /** The service reads the file once more. */
  async function reading(): Promise<void> {
    pass(SECOND);
    while (jest.getTimerCount() === 0) await new Promise((resolve) => setImmediate(resolve));
  }

  async function readings(number: number): Promise<void> {
    for (let time = 0; time < number; time++) await reading();
  }

  function faultOf(content: string | Buffer): string {
    writeFileSync(file, content);
    try {
      new TokenFileVerifier(file);
    } catch (error) {
      if (error instanceof TokenFileError) return error.message;
      throw error;
    }
    return '';
  }

  describe('says', () => {
    it('a token a line, as it is or as its digest', () => {
      follow(`first\n${entryOfDigest(tokenDigest('second'))}\nthird+/~==`);

      expect(['first', 'second', 'third+/~=='].map(callerOf)).toEqual([
        'line 1',
        'line 2',
        'line 3',
      ]);
      expect(callerOf('fourth')).toBeUndefined();
      expect(callerOf(entryOfDigest(tokenDigest('second')))).toBeUndefined();
    });

    it('optionally who has it and how long it is good', () => {
      follow('a ci\nb deploy 2100-01-01T00:00:00Z\nc\t2100-01-01t00:00:00.5+02:00');

      expect(['a', 'b', 'c'].map(callerOf)).toEqual(['ci', 'deploy', 'line 3']);
    });

    it('comments and nothing, however lines end', () => {
      follow('\ufeff# tokens\r\n\r\n  a  ci # since May\r\n#b\n');

      expect(callerOf('a')).toBe('ci');
      expect(callerOf('b')).toBeUndefined();
    });

    it.each(['\r', '\u2028', '\u2029'])('no token in a comment, though %j is in it', (end) => {
      follow(`a\n# old:${end}b`);

      expect(callerOf('a')).toBe('line 1');
      expect(callerOf('b')).toBeUndefined();
    });

    it('nothing at all, and then no token is good', () => {
      follow('');

      expect(callerOf('a')).toBeUndefined();
    });

    it('that a token is good until its time has come', () => {
      jest.setSystemTime(new Date('2027-01-31T11:59:59.999Z'));
      follow('a ci 2027-01-31T12:00:00Z');
      expect(callerOf('a')).toBe('ci');

      jest.setSystemTime(new Date('2027-01-31T12:00:00Z'));

      expect(() => callerOf('a')).toThrow(new InvalidTokenError('The token has expired.'));
    });
  });

  describe('is refused at the start, by its line and without a word of a token,', () => {
    const badToken =
      'line 2 must begin with a token (letters, digits and -._~+/, then any =) or sha256: and 64 hexadecimal digits';
    const badRest =
      'line 2 must have nothing after the token but a name (a letter, then letters, digits and _.@-) and a time such as 2027-01-31T12:00:00Z';

    it.each([
      ['a token of characters that none has', 'sécret', badToken],
      ['half a digest', 'sha256:secret', badToken],
      ['a digest of another kind', `sha1:${'0'.repeat(40)}`, badToken],
      ['a token in two halves', 'secret 7secret', badRest],
      ['a date without a time', 'secret 2027-01-31', badRest],
      ['a time without a zone', 'secret ci 2027-01-31T12:00:00', badRest],
      ['a day that the month has not', 'secret ci 2027-02-30T12:00:00Z', badRest],
      ['a month that no year has', 'secret ci 2027-13-01T12:00:00Z', badRest],
      ['an hour that no day has', 'secret ci 2027-01-01T24:00:00Z', badRest],
      ['time and name the other way round', 'secret 2027-01-31T12:00:00Z ci', badRest],
      ['more than that', 'secret ci 2027-01-31T12:00:00Z secret', badRest],
      ['a token that is there already', 'a', 'line 2 repeats line 1'],
    ])('for %s', (_what, line, fault) => {
      expect(faultOf(`a\n${line}\n`)).toBe(`The token file ${file} cannot be used: ${fault}.`);
    });

    it('for bytes that are not UTF-8', () => {
      expect(faultOf(Buffer.from([0x61, 0xff]))).toMatch(/it is not UTF-8\.$/);
    });

    it('for being absent', () => {
      expect(() => new TokenFileVerifier(file)).toThrow(
        /^The token file .* cannot be used: ENOENT/,
      );
    });

    it('for being a folder, or a pipe, which gives its content only once', () => {
      const pipe = join(folder, 'pipe');
      execFileSync('mkfifo', [pipe]);

      for (const path of [folder, pipe]) {
        expect(() => new TokenFileVerifier(path)).toThrow(
          / cannot be used: it is not a regular file\.$/,
        );
      }
    });
  });

  describe('counts, when it changes,', () => {
    let log: jest.SpyInstance;
    let error: jest.SpyInstance;
    beforeEach(() => {
      log = jest.spyOn(Logger.prototype, 'log').mockImplementation();
      error = jest.spyOn(Logger.prototype, 'error').mockImplementation();
    });

    it('at the second reading, 2 s later', async () => {
      follow('old');

      writeFileSync(file, 'new');
      await reading();
      expect([callerOf('old'), callerOf('new')]).toEqual(['line 1', undefined]);
      await reading();
      expect([callerOf('old'), callerOf('new')]).toEqual([undefined, 'line 1']);

      expect(log.mock.calls).toEqual([[`Read ${file} again; tokens: 1.`]]);
    });

    it('not while it is being written', async () => {
      follow('a\nb\nc\n');

      for (const content of ['', 'd\n', 'd\na\n', 'd\na\nb\nc\n']) {
        writeFileSync(file, content);
        await reading();
        expect(callerOf('a')).toBe('line 1');
      }
      await reading();

      expect(callerOf('a')).toBe('line 2');
    });

    it('when it keeps its size and its time of change', async () => {
      follow('old');
      const time = new Date(0);
      utimesSync(file, time, time);

      writeFileSync(file, 'new');
      utimesSync(file, time, time);
      await readings(2);

      expect([callerOf('old'), callerOf('new')]).toEqual([undefined, 'line 1']);
    });

    it('when another file takes its place', async () => {
      follow('old');

      writeFileSync(`${file}.new`, 'new');
      renameSync(`${file}.new`, file);
      await readings(2);

      expect([callerOf('old'), callerOf('new')]).toEqual([undefined, 'line 1']);
    });

    it('when a symbolic link on the way is turned, as Kubernetes does', async () => {
      for (const version of ['old', 'new']) writeFileSync(join(folder, version), version);
      symlinkSync('old', file);
      verifier = new TokenFileVerifier(file);
      verifier.onModuleInit();

      symlinkSync('new', `${file}.turned`);
      renameSync(`${file}.turned`, file);
      await readings(2);

      expect([callerOf('old'), callerOf('new')]).toEqual([undefined, 'line 1']);
    });

    it('when it is emptied: then no token is good', async () => {
      follow('a');

      writeFileSync(file, '');
      await readings(2);

      expect(callerOf('a')).toBeUndefined();
    });

    it('not when the edit is broken: the list stays, and the log names the line once', async () => {
      follow('a\nb');

      writeFileSync(file, 'a\nsecret 7secret\n');
      await readings(5);

      expect([callerOf('a'), callerOf('b')]).toEqual(['line 1', 'line 2']);
      expect(error).toHaveBeenCalledTimes(1);
      expect(error).toHaveBeenCalledWith(
        expect.stringMatching(/: line 2 must .*\. The tokens read before stay in force\.$/),
      );
      expect(error).not.toHaveBeenCalledWith(expect.stringContaining('secret'));
    });

    it('once a broken edit is mended', async () => {
      follow('a');
      writeFileSync(file, 'b c d e');
      await readings(2);

      writeFileSync(file, 'b');
      await readings(2);

      expect([callerOf('a'), callerOf('b')]).toEqual([undefined, 'line 1']);
    });

    it('not when it vanishes: the list stays, the log says so once, and a new one counts', async () => {
      follow('a');

      unlinkSync(file);
      await readings(3);
      expect(callerOf('a')).toBe('line 1');
      expect(error.mock.calls).toEqual([[expect.stringContaining('ENOENT') as string]]);

      writeFileSync(file, 'b');
      await readings(2);
      expect([callerOf('a'), callerOf('b')]).toEqual([undefined, 'line 1']);
    });

    it('no more after the shutdown', async () => {
      follow('a');
      await reading();

      verifier?.onApplicationShutdown();

      expect(jest.getTimerCount()).toBe(0);
      rmSync(file);
    });
  });
});

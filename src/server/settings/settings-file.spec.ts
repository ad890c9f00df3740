import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { useFolder } from '../../../test/support/folder';
import { addSettingsFile } from './settings-file';
import { OperatorError } from '../../plants/errors/operator.error';

describe('addSettingsFile', () => {
  const file = join(useFolder(), 'service.env');

  it('adds the variables after a byte order mark, and keeps variables that are set', () => {
    writeFileSync(
      file,
      '\ufeffNODE_ENV=production\n# comment\n\n  # "\nPORT=1\n export HOST="::1"\r\nRATE_LIMIT=\nDOCS=false\nAUTH_TOKENS=abc\nPGUSER=x\nOTEL_TRACES_EXPORTER=otlp\n',
    );
    const own = { DOCS: 'true', AUTH_TOKENS: '' };
    const environment = { ...own };

    addSettingsFile(file, environment);

    expect(environment).toEqual({
      ...own,
      NODE_ENV: 'production',
      PORT: '1',
      HOST: '::1',
      RATE_LIMIT: '',
      PGUSER: 'x',
      OTEL_TRACES_EXPORTER: 'otlp',
    });
  });

  /** Reads a file with these lines. Returns the lines of the error. */
  function findErrors(...lines: string[]): string[] {
    writeFileSync(file, lines.join('\n'));
    try {
      addSettingsFile(file, {});
    } catch (error) {
      if (error instanceof OperatorError) return error.message.split('\n');
      throw error;
    }
    return [];
  }

  it.each([
    'PORT 1',
    'PORT: 1',
    '=1',
    'PORT = 1',
    'PORT= 1',
    'DOCS=a # b',
    'DOCS=a#b',
    'DOCS=#',
    'DOCS="a"b',
    'DOCS="a" b#c',
    "DOCS='a'#b",
    'DOCS="a"\tPORT=1',
    'DOCS="a" # b',
    'DOCS="a"b"',
    'DOCS=a\rPORT=1',
    'DOCS="a',
    'DOCS="',
    'DOCS="a\\nb"',
    'DOCS=a\t#b',
  ])('rejects the line %j, which programs read differently', (line) => {
    expect(findErrors('HOST=a', '# c', '', line, 'PORT=1')).toEqual([
      expect.stringMatching(`^--settings ${file}: line 4 must be NAME=VALUE`),
    ]);
  });

  it.each([
    'DATABSE_URL',
    'AUTH_TOKEN',
    'port',
    'PO-RT',
    '1PORT',
    'export\tPORT',
    'NODE_OPTIONS',
    'EXTRA_PGUSER',
    '__proto__',
    'constructor',
  ])('rejects the name %j, which the service does not read', (name) => {
    expect(findErrors('HOST=a', `${name}=secret`)).toEqual([
      `--settings ${file}: line 2: ${name} is not a variable of the service: correct its name, or remove it.`,
    ]);
  });

  it('rejects each name that occurs twice, whichever value the operator meant', () => {
    const lines = ['AUTH_TOKENS=old', 'PORT=1', 'export AUTH_TOKENS="new"', 'PORT=1'];

    expect(findErrors(...lines)).toEqual([
      `--settings ${file}: line 3: AUTH_TOKENS occurs twice: remove one of its lines.`,
      `--settings ${file}: line 4: PORT occurs twice: remove one of its lines.`,
    ]);
  });

  it('reports all errors of a file', () => {
    expect(findErrors('A=1', 'PORT', 'B=2')).toHaveLength(3);
  });

  it.each(['a b', 'a=b', 'it\'s "x"', '$HOME', 'ä\\n', 'a\tb', '\\'])(
    'reads the value %j whole',
    (value) => {
      writeFileSync(file, `DOCS=${value}\nHOST=\`${value} #\`\n`);
      const environment = {};

      addSettingsFile(file, environment);

      expect(environment).toEqual({ DOCS: value, HOST: `${value} #` });
    },
  );

  it.each([
    [file, 'no such file or directory'],
    // A device or a pipe may never end.
    ['/dev/null', 'it is not a regular file'],
  ])('rejects the file %s', (path, reason) => {
    expect(() => {
      addSettingsFile(path, {});
    }).toThrow(new OperatorError(`--settings ${path} cannot be read: ${reason}.`));
  });
});

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
      '\ufeffNODE_ENV=production\n# comment\n\n  # "\nPORT=1\n export HOST="::1"\r\nEMPTY=\nDOCS=false\nAUTH_TOKENS=abc\n',
    );
    const own = { DOCS: 'true', AUTH_TOKENS: '' };
    const environment = { ...own };

    addSettingsFile(file, environment);

    const added = { NODE_ENV: 'production', PORT: '1', HOST: '::1', EMPTY: '' };
    expect(environment).toEqual({ ...own, ...added });
  });

  it.each([
    ...['PORT 1', 'PORT: 1', '=1', '1PORT=1', 'PO-RT=1', 'PORT = 1', 'export\tPORT=1'],
    ...['A=a # b', 'A="a"b', 'A="a" b#c', "A='a'#b", 'A="a"\tB=1', 'A="a" # b', 'A="a"b"'],
    ...['A=a\rPORT=1', 'A="a', 'A=a\t#b'],
  ])('rejects the line %j, which could be read in several ways', (line) => {
    writeFileSync(file, `HOST=a\n# c\n\n${line}\nB=1\n`);

    expect(() => {
      addSettingsFile(file, {});
    }).toThrow(`--settings ${file}: line 4 must be NAME=VALUE`);
  });

  it.each(['a#b', '#', 'a b', 'a=b', 'it\'s "x"', '$HOME', 'ä\\n'])(
    'reads the value %j whole',
    (value) => {
      writeFileSync(file, `A=${value}\nB=\`${value} #\`\n`);
      const environment = {};

      addSettingsFile(file, environment);

      expect(environment).toEqual({ A: value, B: `${value} #` });
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

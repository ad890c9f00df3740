import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { useFolder } from '../../../test/support/folder';
import { addEnvFile } from './env-file';
import { OperatorError } from '../../plants/errors/operator.error';

describe('addEnvFile', () => {
  const file = join(useFolder(), 'service.env');

  it('adds the variables after a byte order mark as Node.js parses them, and keeps variables that are set', () => {
    writeFileSync(
      file,
      '\ufeffNODE_ENV=production\n# comment\n\nPORT=1\n export HOST = "::1" # loopback\r\nTEXT="a\n no assignment\nb"\nEMPTY=\nDOCS=false\nAUTH_TOKENS=abc\n',
    );
    const own = { DOCS: 'true', AUTH_TOKENS: '' };
    const environment = { ...own };

    addEnvFile(file, environment);

    const added = {
      NODE_ENV: 'production',
      PORT: '1',
      HOST: '::1',
      TEXT: 'a\n no assignment\nb',
      EMPTY: '',
    };
    expect(environment).toEqual({ ...own, ...added });
  });

  it.each([
    ...[
      'PORT 1',
      'PORT: 1',
      '=1',
      '1PORT=1',
      'PO-RT=1',
      '\ufeffPORT=1',
      '\u00a0PORT=1',
      'export\tPORT=1',
    ],
    ...['A=sqlite:/srv/plants#1.db', 'A=#1', 'A="a"b', 'A="a" b#c', "A='a'#b", 'A="a"\tB=1'],
    ...['A= \nPORT=1', 'A=a\rPORT=1', 'A="a\nmore', '# "\nB=1#\n# "'],
  ])('rejects the line %j, which Node.js would ignore or cut', (line) => {
    writeFileSync(file, `HOST="a\nb"\n# c\nEMPTY=\n${line}\n`);
    const number = line.startsWith('#') ? 6 : 5;

    expect(() => {
      addEnvFile(file, {});
    }).toThrow(
      new OperatorError(
        `--env-file ${file}: line ${number} must be NAME=VALUE. Write quotation marks around a value with # or a quotation mark, and nothing after the = of an empty value.`,
      ),
    );
  });

  it.each(['a#b', 'a #b', " it's#", 'a\nb=c #', '"a"#b', ''])(
    'reads the quoted value %j whole',
    (value) => {
      const quote = ['"', "'", '`'].find((mark) => !value.includes(mark)) ?? '';
      writeFileSync(file, `A=${quote}${value}${quote} # comment\n`);
      const environment = {};

      addEnvFile(file, environment);

      expect(environment).toEqual({ A: value });
    },
  );

  it.each([
    [file, 'no such file or directory'],
    // A device or a pipe may never end.
    ['/dev/null', 'it is not a regular file'],
  ])('rejects the file %s', (path, reason) => {
    expect(() => {
      addEnvFile(path, {});
    }).toThrow(new OperatorError(`--env-file ${path} cannot be read: ${reason}.`));
  });
});

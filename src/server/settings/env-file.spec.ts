import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { useFolder } from '../../../test/support/folder';
import { describeOnLinux } from '../../../test/support/run';
import { addEnvFile } from './env-file';
import { OperatorError } from '../../plants/errors/operator.error';

describe('addEnvFile', () => {
  const file = join(useFolder(), 'service.env');

  it('adds the variables of the file as Node.js parses them, and keeps variables that are already set', () => {
    writeFileSync(
      file,
      '# comment\n\nPORT=1\n export HOST = "::1" # loopback\r\nTEXT="a\n no assignment\nb"\nEMPTY=\nDOCS=false\nAUTH_TOKENS=abc\n',
    );
    const own = { DOCS: 'true', AUTH_TOKENS: '' };
    const environment = { ...own };

    addEnvFile(file, environment);

    const added = { PORT: '1', HOST: '::1', TEXT: 'a\n no assignment\nb', EMPTY: '' };
    expect(environment).toEqual({ ...own, ...added });
  });

  it.each(['PORT 1', 'PORT: 1', '=1', 'TEXT="a"\nmore'])('rejects the line %j', (line) => {
    writeFileSync(file, `HOST="a\nb"\n${line}\n`);
    const number = line.split('\n').length + 2;

    expect(() => {
      addEnvFile(file, {});
    }).toThrow(new OperatorError(`--env-file ${file}: line ${number} must be NAME=VALUE`));
  });

  function expectUnreadable(reason: string): void {
    expect(() => {
      addEnvFile(file, {});
    }).toThrow(new OperatorError(`--env-file ${file} cannot be read: ${reason}`));
  }

  it('rejects a file that does not exist', () => {
    expectUnreadable('no such file or directory');
  });

  describeOnLinux(() => {
    it('rejects a pipe without waiting for a writer', () => {
      execFileSync('mkfifo', [file]);

      expectUnreadable('it is not a regular file');
    });
  });
});

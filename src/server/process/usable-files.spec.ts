import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { useFolder } from '../../../test/support/folder';
import { useLog } from '../../../test/support/log';
import { readEnvironment } from '../settings/environment';
import { assertUsableFiles } from './usable-files';

const log = useLog();
const folder = useFolder();
const file = join(folder, 'invalid');
const shortToken = join(folder, 'tokens.txt');
const TOKENS = { AUTH_TOKENS_FILE: file };
const TLS = { TLS_CERT: file, TLS_KEY: file };
const DIRECTORY = { DATABASE_URL: `sqlite:${folder}` };
const BELOW_A_FILE = { DATABASE_URL: `sqlite:${file}/new/plants.db` };

it.each([
  [{ AUTH_TOKENS_FILE: shortToken, ...TLS }, ['TLS_CERT']],
  [{ ...TOKENS, ...TLS, ...DIRECTORY }, ['AUTH_TOKENS_FILE', 'TLS_CERT', 'DATABASE_URL']],
  [{ ...TOKENS, ...BELOW_A_FILE }, ['AUTH_TOKENS_FILE', 'DATABASE_URL']],
  [{ ...TLS, ...BELOW_A_FILE }, ['TLS_CERT', 'DATABASE_URL']],
  [{ ...TLS, DATABASE_URL: `sqlite:${file}` }, ['TLS_CERT', 'DATABASE_URL']],
  [{ ...TOKENS, ...TLS, DATABASE_URL: `sqlite:${file}.db` }, ['AUTH_TOKENS_FILE', 'TLS_CERT']],
  [{ ...TOKENS, DATABASE_URL: 'postgres://localhost/plants' }, ['AUTH_TOKENS_FILE']],
])(
  'reports every file of %j that cannot be used, without a log line or a new file',
  (environment, names) => {
    writeFileSync(file, 'bäd');
    writeFileSync(shortToken, 'short');
    let message = '';
    try {
      assertUsableFiles(readEnvironment(environment));
    } catch (error) {
      ({ message } = error as Error);
    }

    expect(message.split('\n').map((line) => line.split(' ')[0])).toEqual(names);
    expect(readdirSync(folder)).toEqual(['invalid', 'tokens.txt']);
    expect(log.lines).toEqual([]);
  },
);

import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { useFolder } from '../../../test/support/folder';
import { readEnvironment } from './environment';
import { assertUsableFiles } from './usable-files';

const folder = useFolder();
const file = join(folder, 'invalid');
const TOKENS = { AUTH_TOKENS_FILE: file };
const TLS = { TLS_CERT: file, TLS_KEY: file };
const DIRECTORY = { DATABASE_URL: `sqlite:${folder}` };
const BELOW_A_FILE = { DATABASE_URL: `sqlite:${file}/new/plants.db` };

it.each([
  [{ ...TOKENS, ...TLS, ...DIRECTORY }, ['AUTH_TOKENS_FILE', 'TLS_CERT', 'DATABASE_URL']],
  [{ ...TOKENS, ...BELOW_A_FILE }, ['AUTH_TOKENS_FILE', 'DATABASE_URL']],
  [{ ...TLS, ...BELOW_A_FILE }, ['TLS_CERT', 'DATABASE_URL']],
  [{ ...TLS, DATABASE_URL: `sqlite:${file}` }, ['TLS_CERT', 'DATABASE_URL']],
  [{ ...TOKENS, ...TLS, DATABASE_URL: `sqlite:${file}.db` }, ['AUTH_TOKENS_FILE', 'TLS_CERT']],
  [{ ...TOKENS, DATABASE_URL: 'postgres://localhost/plants' }, ['AUTH_TOKENS_FILE']],
])('reports every file of %j that cannot be used, and creates none', (environment, names) => {
  writeFileSync(file, 'bäd');
  let message = '';
  try {
    assertUsableFiles(readEnvironment(environment));
  } catch (error) {
    ({ message } = error as Error);
  }

  expect(message.split('\n').map((line) => line.split(' ')[0])).toEqual(names);
  expect(readdirSync(folder)).toEqual(['invalid']);
});

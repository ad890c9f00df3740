import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { errorCatalogue, PlantsRepository } from '../../src/plants';
import { TestApplication } from '../support/application';
import { errorBodies, errorNumbers } from '../support/error-bodies';

describe('the error catalogue', () => {
  const lines = Object.values(errorCatalogue);

  const rowsOf = (page: string): string[][] => {
    const text = readFileSync(join(__dirname, '../..', page), 'utf8');
    const rows = text.matchAll(/^\| `(\d{5})` \| (.*?) +\|$/gm);
    return Array.from(rows, ([, ...columns]) => columns);
  };
  const expected = lines.map(({ error, meaning }) => [String(error), meaning]);

  it('has unique numbers, and matches docs/errors.md and the rows in the README', () => {
    expect(new Set(lines.map(({ error }) => error)).size).toBe(lines.length);
    expect(rowsOf('docs/errors.md')).toEqual(expected);
    expect(expected).toEqual(expect.arrayContaining(rowsOf('README.md')));
  });
});

describe('a create request whose store throws an unexpected error', () => {
  const application = TestApplication.use();
  afterEach(() => {
    jest.restoreAllMocks();
  });

  it('gets 500, and the log contains the cause', async () => {
    const failure = new Error('a secret of the inside');
    const store = application.app.get(PlantsRepository, { strict: false });
    jest.spyOn(store, 'insert').mockRejectedValue(failure);
    const other = jest.fn();
    const error = jest.fn();
    application.app.useLogger({ log: other, warn: other, error });

    const response = await application.post('{"id":1,"name":"Fern"}');

    expect(response.json()).toEqual(errorBodies.internal);
    const requestId: unknown = expect.any(String);
    const message: unknown = expect.stringMatching(`^${errorNumbers.internal} `);
    expect(error.mock.calls).toEqual([
      [expect.objectContaining({ message, cause: failure, requestId }), undefined, 'Errors'],
    ]);
  });
});

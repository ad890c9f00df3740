import { inspect } from 'node:util';
import { BearerToken } from './bearer-token';

it('BearerToken shows neither its token nor its digest when it is inspected or serialized', () => {
  const token = new BearerToken('a-secret');
  expect(token.digest).toHaveLength(64);

  const shown = inspect(token, { showHidden: true }) + JSON.stringify({ token });

  expect(shown).not.toContain('secret');
  expect(shown).not.toContain(token.digest);
});

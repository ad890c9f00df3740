import fc from 'fast-check';
import { findNearMatch } from './near-match';

const KNOWN = ['DATABASE_URL', 'PORT', 'sslmode'];

describe('findNearMatch', () => {
  it.each(['', 'DATABSE_ULR', 'DATABASE', 'PRTO_', 'sslrootcert', 'TROP'])(
    'has nothing near %j',
    (name) => {
      expect(findNearMatch(name, KNOWN)).toBeUndefined();
    },
  );

  it('finds a name after any single edit', () => {
    const word = fc.stringMatching(/^[A-Z_]{2,12}$/);
    fc.assert(
      fc.property(word, fc.nat(), fc.constantFrom('A', '_'), (name, position, character) => {
        const at = position % (name.length - 1);
        const before = name.slice(0, at);
        const after = name.slice(at + 1);

        for (const edited of [
          before + after,
          before + character + after,
          before + character + name.slice(at),
          before + name.charAt(at + 1) + name.charAt(at) + name.slice(at + 2),
        ]) {
          expect(findNearMatch(edited, [name])).toBe(name);
        }
      }),
      { verbose: true },
    );
  });
});

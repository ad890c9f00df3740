import * as fc from 'fast-check';
import { findJsonFault } from './json-fault';

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** JSON with white space, and a few characters put in, left out or replaced. */
const almostJson = fc
  .tuple(
    fc.json(),
    fc.constantFrom(undefined, 1, '\n\t'),
    fc.array(
      fc.tuple(
        fc.nat(),
        fc.nat({ max: 2 }),
        fc.constantFrom(...Array.from('{}[]",:\\/u019-+.eEtfn \r\n\u0000ä')),
      ),
      { maxLength: 2 },
    ),
  )
  .map(([json, indent, edits]) =>
    edits.reduce(
      (text, [at, removed, added]) => {
        const index = at % (text.length + 1);
        return text.slice(0, index) + added + text.slice(index + removed);
      },
      JSON.stringify(JSON.parse(json), undefined, indent),
    ),
  );

describe('findJsonFault', () => {
  it('finds a fault where JSON.parse does, and nowhere else', () => {
    fc.assert(
      fc.property(fc.oneof(almostJson, fc.string()), (text) => {
        expect(findJsonFault(text) === undefined).toBe(isJson(text));
      }),
      { numRuns: 5000 },
    );
  });

  it.each([
    ['', 'a value at line 1, column 1'],
    ['{"id":7', '"," or "}" at line 1, column 8'],
    ['{"id":7,}', 'the name of a member at line 1, column 9'],
    ['{"id" 7}', '":" at line 1, column 7'],
    ['{"id":}', 'a value at line 1, column 7'],
    ['{"id":07}', '"," or "}" at line 1, column 8'],
    ['{"id":1.}', '"," or "}" at line 1, column 8'],
    ['[1,\r\n  2 3]', '"," or "]" at line 2, column 5'],
    ['{"a":"b', 'the end of the string at line 1, column 8'],
    ['{"a":"\\x"}', 'an escape sequence at line 1, column 8'],
    ['{"a":"\n"}', 'no control character in the string at line 1, column 7'],
    ["{'a':1}", 'the name of a member at line 1, column 2'],
    ['{"a":NaN}', 'a value at line 1, column 6'],
    ['{} {}', 'the end at line 1, column 4'],
    ['\ufeff{}', 'a value at line 1, column 1'],
  ])('says of %j: expected %s', (text, expected) => {
    expect(findJsonFault(text)).toBe(`expected ${expected}`);
  });

  it('is not deterred by depth', () => {
    expect(findJsonFault('['.repeat(100_000))).toBe('expected a value at line 1, column 100001');
  });
});

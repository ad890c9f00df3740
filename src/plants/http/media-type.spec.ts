import * as fc from 'fast-check';
import { isJsonMediaType } from './media-type';

const token = fc.stringMatching(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/);
const quotedString = fc
  .string({ unit: fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCharCode(code)) })
  .map((text) => `"${text.replaceAll(/["\\]/g, String.raw`\$&`)}"`);
const space = fc.constantFrom('', ' ', '\t', ' \t');

/** Any parameter except the charset, with its semicolon. */
const parameter = fc
  .tuple(
    space,
    space,
    token.filter((name) => name.toLowerCase() !== 'charset'),
    fc.oneof(token, quotedString),
  )
  .map(([before, after, name, value]) => `${before};${after}${name}=${value}`);
const parameters = fc
  .array(fc.oneof(parameter, fc.constantFrom(';', ' ; ')))
  .map((each) => each.join(''));

describe('isJsonMediaType', () => {
  // prettier-ignore
  it.each([
    'text/json', 'application/jsonp', 'application/merge-patch+json',
    'application/json charset=utf-8',
  ])('rejects %s', (type) => {
    expect(isJsonMediaType(type)).toBe(false);
  });

  it('accepts any well-formed parameters around the charset utf-8 or utf8', () => {
    // prettier-ignore
    const charset = fc.constantFrom(
      '', ';charset=utf-8', '; Charset="UTF-8"', ';charset=utf8', ';charset="utf8"',
    );
    fc.assert(
      fc.property(parameters, charset, parameters, (before, middle, after) => {
        expect(isJsonMediaType(`application/json${before}${middle}${after}`)).toBe(true);
      }),
    );
  });

  it('rejects a malformed parameter or another charset at any position', () => {
    // prettier-ignore
    const invalid = fc.constantFrom(
      ';charset=latin1', ', text/plain', ';CHARSET="utf-16"', ';charset=""', ';charset=utf-8x',
      ';a', ';a=', ';=b', ';a="b', ';a="b"c', ';a=b c', ';a =b', ';a= b', ';é=b', ',', '"',
      ';charset', '\u00a0',
    );

    fc.assert(
      fc.property(parameters, invalid, parameters, (before, middle, after) => {
        expect(isJsonMediaType(`application/json${before}${middle}${after}`)).toBe(false);
      }),
    );
  });
});

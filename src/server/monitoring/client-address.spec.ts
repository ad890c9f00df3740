import { parseAddress } from './client-address';

it.each([
  ['203.0.113.7', '203.0.113.7'],
  ['203.0.113.7:51234', '203.0.113.7'],
  ['2001:db9::7', '2001:db9::7'],
  ['[2001:db9::7]:443', '2001:db9::7'],
  ['unknown', undefined],
  ['203.0.113.7:x', undefined],
  [undefined, undefined],
])('parseAddress reads the address in %s as %s', (text, expected) => {
  expect(parseAddress(text)).toBe(expected);
});

import { parseAddress, removePorts } from './client-address';

it.each([
  ['203.0.113.7:51234,10.0.0.2:443', '203.0.113.7, 10.0.0.2'],
  ['[2001:db9::7]:443, 2001:db9::7,[2001:db9::7]', '2001:db9::7, 2001:db9::7, 2001:db9::7'],
  ['unknown, 203.0.113.7:x', 'unknown, 203.0.113.7:x'],
])('removePorts returns the addresses of %s as %s', (text, expected) => {
  expect(removePorts(text)).toBe(expected);
});

it.each([
  ['203.0.113.7', '203.0.113.7'],
  ['2001:db9::7', '2001:db9::7'],
  ['unknown', undefined],
  [undefined, undefined],
])('parseAddress reads the address in %s as %s', (text, expected) => {
  expect(parseAddress(text)).toBe(expected);
});

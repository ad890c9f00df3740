/** How texts and addresses of clients are written in the log. */
import { formatAddress } from './client-address';
import { escapeInvisible } from './log-text';

it.each([
  ['a\nb\r', 'a\\u{a}b\\u{d}'],
  ['\u0085\u2028\u2029', '\\u{85}\\u{2028}\\u{2029}'],
  ['\u009b31m\u001b[31m', '\\u{9b}31m\\u{1b}[31m'],
  ['\u202egpj', '\\u{202e}gpj'],
  ['\ud800', '\\u{d800}'],
  ['Frau Müller 🌱', 'Frau Müller 🌱'],
])('escapeInvisible writes %j as %j', (text, written) => {
  expect(escapeInvisible(text)).toBe(written);
});

it.each([
  ['::ffff:192.0.2.7', '192.0.2.7'],
  ['192.0.2.7', '192.0.2.7'],
  ['2001:db8::7', '2001:db8::7'],
  ['::ffff:1', '::ffff:1'],
])('formatAddress writes %s as %s', (address, written) => {
  expect(formatAddress(address)).toBe(written);
});

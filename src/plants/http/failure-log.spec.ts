import type { IncomingMessage } from 'node:http';
import { requestFields } from './failure-log';

const ID = '0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331';

it.each([
  [`00-${ID}-01`, true],
  [`ff-${ID}-01`, false],
  [`00-${ID.toUpperCase()}-01`, false],
  [`00-${'0'.repeat(32)}-b7ad6b7169203331-01`, false],
  [`00-0af7651916cd43dd8448eb211c80319c-${'0'.repeat(16)}-01`, false],
  [`00-${ID}-01, 00-${ID}-01`, false],
  ['\x9b31m', false],
])('requestFields contains the traceparent %j: %j', (traceparent, expected) => {
  const request = { headers: { traceparent } } as unknown as IncomingMessage;

  expect('traceparent' in requestFields(request)).toBe(expected);
});

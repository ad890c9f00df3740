/** Tests which `traceparent` a line of the log repeats. */
import type { IncomingMessage } from 'node:http';
import { requestFields } from './failure-log';

const ID = '0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331';

it.each([
  [`00-${ID}-01`, `00-${ID}-01`],
  [`01-${ID}-01`, `01-${ID}-01`],
  [`cc-${ID}-01-what-the-future-brings`, `cc-${ID}-01`],
])('requestFields keeps the first four fields of the traceparent %s', (traceparent, kept) => {
  const request = { headers: { traceparent } } as unknown as IncomingMessage;

  expect(requestFields(request)).toEqual({ traceparent: kept });
});

it.each([
  `00-${ID}-01-more`,
  `cc-${ID}-01.more`,
  `ff-${ID}-01`,
  `00-${ID.replace(/^\w+/, '0'.repeat(32))}-01`,
  `00-${ID.toUpperCase()}-01`,
  `00-${ID.replace(/\w+$/, '0'.repeat(16))}-01`,
  `00-${ID}-01, 00-${ID}-01`,
  `00-${ID}`,
])('requestFields omits the invalid traceparent %s', (traceparent) => {
  const request = { headers: { traceparent } } as unknown as IncomingMessage;

  expect(requestFields(request)).not.toHaveProperty('traceparent');
});

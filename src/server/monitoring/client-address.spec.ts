import { fastify } from 'fastify';
import { parseAddress } from './client-address';

describe('the client address', () => {
  const trusted = ['127.0.0.1', '10.0.0.0/8', '2001:db8::/32'];

  it.each([
    ['203.0.113.7', '203.0.113.7'],
    ['203.0.113.7:51234', '203.0.113.7'],
    ['2001:db9::7', '2001:db9::7'],
    ['[2001:db9::7]:443', '2001:db9::7'],
    ['203.0.113.7:51234, 2001:db8::1, 10.1.0.4', '203.0.113.7'],
    ['198.51.100.1, 203.0.113.7:80', '203.0.113.7'],
    ['203.0.113.7, unknown', undefined],
    ['unknown', undefined],
    ['203.0.113.7:x', undefined],
  ])('of X-Forwarded-For: %s behind trusted proxies is %s', async (forwarded, expected) => {
    const app = fastify({ trustProxy: trusted });
    app.get('/', ({ ip }) => ({ address: parseAddress(ip) }));

    const response = await app.inject({ url: '/', headers: { 'x-forwarded-for': forwarded } });

    expect(response.json()).toEqual({ address: expected });
  });
});

import { fastify } from 'fastify';
import { parseAddress, trustProxies } from './client-address';

describe('the client address', () => {
  const trusted = ['127.0.0.1', '10.0.0.0/8', '2001:db8::/32'];

  it.each([
    ['203.0.113.7', '203.0.113.7'],
    ['203.0.113.7:51234', '203.0.113.7'],
    ['2001:db9::7', '2001:db9::7'],
    ['[2001:db9::7]:443', '2001:db9::7'],
    ['203.0.113.7:51234, 10.1.0.4:443', '203.0.113.7'],
    ['203.0.113.7, [2001:db8::1]:443, 10.1.0.4', '203.0.113.7'],
    ['198.51.100.1, 203.0.113.7:80', '203.0.113.7'],
    ['203.0.113.7, unknown', undefined],
    ['unknown', undefined],
    ['203.0.113.7:x', undefined],
  ])('of X-Forwarded-For: %s behind trusted proxies is %s', async (forwarded, expected) => {
    const app = fastify({ trustProxy: trustProxies(trusted) });
    app.get('/', ({ ip }) => ({ address: parseAddress(ip) }));

    const response = await app.inject({ url: '/', headers: { 'x-forwarded-for': forwarded } });

    expect(response.json()).toEqual({ address: expected });
  });

  it('is the peer without a trusted proxy, whatever X-Forwarded-For says', async () => {
    const app = fastify({ trustProxy: trustProxies([]) });
    app.get('/', ({ ip }) => ip);

    const response = await app.inject({ url: '/', headers: { 'x-forwarded-for': '203.0.113.7' } });

    expect(response.body).toBe('127.0.0.1');
  });
});

import { Logger } from '@nestjs/common';
import { BearerToken } from '.';
import { JwtVerifier } from './jwt.verifier';
import { pass, releaseClock, stopClock } from '../../test/support/clock';
import { AUDIENCE, type Draft, makeKey, OpenIdProvider } from '../../test/support/openid-provider';

/** The verifier returns a cached result at once, and a promise when it verifies a token. */
describe('a JWT that was accepted', () => {
  const cacheSize = 3;
  let provider: OpenIdProvider;
  let verifier: JwtVerifier;
  beforeAll(async () => {
    provider = await OpenIdProvider.start(makeKey('EdDSA'));
  });
  beforeEach(async () => {
    jest.spyOn(Logger.prototype, 'log').mockImplementation();
    verifier = new JwtVerifier({ issuer: provider.issuer, audience: AUDIENCE }, cacheSize);
    await verifier.onModuleInit();
  });
  afterEach(() => {
    verifier.onApplicationShutdown();
    jest.restoreAllMocks();
  });
  afterAll(() => provider.stop());

  /** With a new string each time, as in a request. */
  const verify = (token: string) => verifier.verify(new BearerToken(Buffer.from(token).toString()));
  const isCached = (token: string): boolean => !(verify(token) instanceof Promise);

  it('is cached with its caller', async () => {
    const token = await provider.accessToken();

    const verified = await verify(token);
    const cached = verify(token);

    expect(cached).toEqual({ name: AUDIENCE, issuer: provider.issuer });
    expect(cached).toBe(verified);
  });

  it('is dropped when the cache is full and it was used least recently', async () => {
    const tokens = await Promise.all(Array.from({ length: 3 }, () => provider.accessToken()));
    const [first = '', second = '', third = ''] = tokens;
    for (const token of tokens) await verify(token);
    expect(tokens.map(isCached)).toEqual([true, true, true]);

    expect(isCached(first)).toBe(true);
    await verify(await provider.accessToken());

    expect([first, third].map(isCached)).toEqual([true, true]);
    expect(isCached(second)).toBe(false);
  });

  it('is not displaced by refused tokens', async () => {
    const token = await provider.accessToken();
    await verify(token);

    const redraft = ({ payload }: Draft): unknown => (payload.aud = 'other');
    const otherAudience = await provider.accessToken({ redraft });
    const [header, payload] = otherAudience.split('.');
    for (let time = 0; time < 10; time++) {
      await expect(verify(otherAudience)).rejects.toThrow();
      await expect(verify(`${header}.${payload}.${'A'.repeat(82 + time)}`)).rejects.toThrow();
    }

    expect(isCached(token)).toBe(true);
  });

  it('stays cached as long as the issuer publishes the same keys', async () => {
    stopClock();
    verifier.onApplicationShutdown();
    verifier = new JwtVerifier({ issuer: provider.issuer, audience: AUDIENCE });
    await verifier.onModuleInit();
    const token = await provider.accessToken();
    await verify(token);

    const { fetches } = provider;
    pass(5 * 60_000);
    // The timer is set again when the fetch is over.
    while (jest.getTimerCount() === 0) await new Promise((resolve) => setImmediate(resolve));

    expect(provider.fetches).toBe(fetches + 1);
    expect(isCached(token)).toBe(true);
    releaseClock();
  });
});

/** @alone because it measures memory. */

import { Logger } from '@nestjs/common';
import { BearerToken } from '../src/auth';
import { JwtVerifier } from '../src/auth/jwt.verifier';
import { pass, releaseClock, stopClock } from './support/clock';
import { AUDIENCE, makeKey, OpenIdProvider } from './support/openid-provider';

/** How a verifier of few tokens takes them: at once when it remembers, by a promise when it judges. */
describe('a JWT that was accepted', () => {
  const mostRemembered = 3;
  let provider: OpenIdProvider;
  let verifier: JwtVerifier;
  beforeAll(async () => {
    provider = await OpenIdProvider.start(makeKey('EdDSA'));
  });
  beforeEach(() => {
    jest.spyOn(Logger.prototype, 'log').mockImplementation();
    verifier = new JwtVerifier({ issuer: provider.issuer, audience: AUDIENCE }, mostRemembered);
    verifier.onModuleInit();
  });
  afterEach(() => {
    verifier.onApplicationShutdown();
    jest.restoreAllMocks();
  });
  afterAll(() => provider.stop());

  /** As every request brings it: as a text of its own. */
  const verify = (token: string) => verifier.verify(new BearerToken(Buffer.from(token).toString()));
  const isRemembered = (token: string): boolean => !(verify(token) instanceof Promise);

  it('is remembered, with its caller', async () => {
    const token = await provider.accessToken();

    const judged = await verify(token);
    const remembered = verify(token);

    expect(remembered).toEqual({ name: AUDIENCE, issuer: provider.issuer });
    expect(remembered).toBe(judged);
  });

  it('is forgotten when more are accepted than are remembered, those used last staying', async () => {
    const tokens = await Promise.all(Array.from({ length: 3 }, () => provider.accessToken()));
    const [first = '', second = '', third = ''] = tokens;
    for (const token of tokens) await verify(token);
    expect(tokens.map(isRemembered)).toEqual([true, true, true]);

    expect(isRemembered(first)).toBe(true);
    await verify(await provider.accessToken());

    expect([first, third].map(isRemembered)).toEqual([true, true]);
    expect(isRemembered(second)).toBe(false);
  });

  it('is not pushed out by tokens that are refused', async () => {
    const token = await provider.accessToken();
    await verify(token);

    const otherAudience = await provider.accessToken({
      redraft: ({ payload }) => (payload.aud = 'other'),
    });
    for (let time = 0; time < 10; time++) {
      const [header, payload] = otherAudience.split('.');
      await expect(verify(otherAudience)).rejects.toThrow();
      await expect(verify(`${header}.${payload}.${'A'.repeat(82 + time)}`)).rejects.toThrow();
    }

    expect(isRemembered(token)).toBe(true);
  });

  it('is remembered as long as the issuer publishes the same keys', async () => {
    stopClock();
    verifier.onApplicationShutdown();
    verifier = new JwtVerifier({ issuer: provider.issuer, audience: AUDIENCE });
    verifier.onModuleInit();
    const token = await provider.accessToken();
    await verify(token);

    const { fetches } = provider;
    pass(5 * 60_000);
    // The next fetch is planned when this one is over.
    while (jest.getTimerCount() === 0) await new Promise((resolve) => setImmediate(resolve));

    expect(provider.fetches).toBe(fetches + 1);
    expect(isRemembered(token)).toBe(true);
    releaseClock();
  });
});

import { Logger } from '@nestjs/common';
import { BearerToken } from './bearer-token';
import { JwtVerifier } from './jwt.verifier';
import {
  AUDIENCE,
  type Draft,
  makeKey,
  OpenIdProvider,
} from '../../../test/support/openid-provider';

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
    await verifier.keys.start();
    // Nothing is cached before the keys are there.
    await verify(await provider.accessToken());
  });
  afterEach(() => {
    verifier.keys.stop();
    jest.restoreAllMocks();
  });
  afterAll(() => provider.stop());

  /** With a new string each time, as in a request. */
  const verify = async (token: string) => {
    const grant = await verifier.verify(new BearerToken(Buffer.from(token).toString()));
    return grant?.caller;
  };
  /** A cached token has the caller that it had before. */
  const isCached = async (token: string, before: unknown): Promise<boolean> =>
    (await verify(token)) === before;

  it('is dropped when the cache is full and it was used least recently', async () => {
    const tokens = await Promise.all(Array.from({ length: 4 }, () => provider.accessToken()));
    const [first = '', second = '', third = '', fourth = ''] = tokens;
    const callers = new Map<string, unknown>();
    for (const token of [first, second, third]) callers.set(token, await verify(token));
    await verify(first);

    await verify(fourth);

    expect(await isCached(first, callers.get(first))).toBe(true);
    expect(await isCached(third, callers.get(third))).toBe(true);
    expect(await isCached(second, callers.get(second))).toBe(false);
  });

  it('is not displaced by refused tokens', async () => {
    const token = await provider.accessToken();
    const verified = await verify(token);

    const redraft = ({ payload }: Draft): unknown => (payload.aud = 'other');
    const otherAudience = await provider.accessToken({ redraft });
    const [header, payload] = otherAudience.split('.');
    for (let time = 0; time < 10; time++) {
      await expect(verify(otherAudience)).rejects.toThrow();
      await expect(verify(`${header}.${payload}.${'A'.repeat(82 + time)}`)).rejects.toThrow();
    }

    expect(await isCached(token, verified)).toBe(true);
  });
});

import { BearerToken } from './bearer-token';
import { JwtVerifier } from './jwt.verifier';
import { useLog } from '../../../test/support/log';
import { AUDIENCE, makeKey, OpenIdProvider } from '../../../test/support/openid-provider';

useLog();
let provider: OpenIdProvider;
let verifier: JwtVerifier;
beforeAll(async () => {
  provider = await OpenIdProvider.start(makeKey('EdDSA'));
  const cacheSize = 1;
  verifier = new JwtVerifier({ issuer: provider.issuer, audience: AUDIENCE }, cacheSize);
  await verifier.keys.start();
  // Nothing is cached before the keys are there.
  await verify(await provider.accessToken());
});
afterAll(async () => {
  verifier.keys.stop();
  await provider.stop();
});

/** With a new string each time, as in a request. What is cached gives the same object again. */
const verify = (token: string) => verifier.verify(new BearerToken(Buffer.from(token).toString()));

it('a JWT that was accepted is cached until another one is, and is not displaced by refused ones', async () => {
  const refused = await provider.accessToken({ redraft: ({ payload }) => (payload.aud = 'other') });
  const token = await provider.accessToken();
  const verified = await verify(token);

  await expect(verify(refused)).rejects.toThrow();
  await expect(verify(`${token.slice(0, -10)}${'A'.repeat(10)}`)).rejects.toThrow();
  expect(await verify(token)).toBe(verified);

  await verify(await provider.accessToken());
  expect(await verify(token)).not.toBe(verified);
});

import { BearerToken } from './bearer-token';
import { JwtVerifier } from './jwt.verifier';
import { useLog } from '../../../test/support/log';
import { AUDIENCE, makeKey, OpenIdProvider } from '../../../test/support/openid-provider';
import { until } from '../../../test/support/until';

useLog();
let provider: OpenIdProvider;
let verifier: JwtVerifier;
beforeAll(async () => {
  provider = await OpenIdProvider.start(makeKey('EdDSA'));
  verifier = new JwtVerifier({ issuer: provider.issuer, audience: AUDIENCE });
  await verifier.keys.start();
  // Nothing is cached before the keys are there. On a busy machine, fetching them may time out.
  const token = await provider.accessToken();
  await until(() => verify(token).then(Boolean, () => false));
});
afterAll(async () => {
  verifier.keys.stop();
  await provider.stop();
});

/** With a new string each time, as in a request. What is cached gives the same object again. */
const verify = (token: string) => verifier.verify(new BearerToken(Buffer.from(token).toString()));

it('JwtVerifier caches accepted JWTs, and does not cache rejected ones', async () => {
  const refused = await provider.accessToken({ redraft: ({ payload }) => (payload.aud = 'other') });
  const token = await provider.accessToken();
  const verified = await verify(token);

  for (let count = 0; count < 2; count++) await expect(verify(refused)).rejects.toThrow();
  expect(await verify(token)).toBe(verified);
});

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
  // Tokens are cached only after the keys were fetched, and on a busy machine a fetch may time out.
  const token = await provider.requestAccessToken();
  await until(() => verify(token).then(Boolean, () => false));
});
afterAll(async () => {
  verifier.keys.stop();
  await provider.stop();
});

/** Verifies a new string, as each request does. Returns the same object again if the token is cached. */
const verify = (token: string) => verifier.verify(new BearerToken(Buffer.from(token).toString()));

it('JwtVerifier returns the same caller for an accepted JWT, and rejects an invalid one each time', async () => {
  const rejected = await provider.requestAccessToken({
    redraft: ({ payload }) => (payload.aud = 'other'),
  });
  const token = await provider.requestAccessToken();
  const verified = await verify(token);

  for (let count = 0; count < 2; count++) await expect(verify(rejected)).rejects.toThrow();
  expect(await verify(token)).toBe(verified);
});

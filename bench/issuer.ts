import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';

/** The audience of the issued tokens. */
export const AUDIENCE = 'plants';

/** Starts an OpenID Connect issuer with one key. Returns its identifier and a token that it issued. */
export async function startIssuer(): Promise<{
  issuer: string;
  token: string;
  stop: () => void;
}> {
  const { publicKey, privateKey } = await generateKeyPair('ES256');
  const key = { ...(await exportJWK(publicKey)), kid: '1', alg: 'ES256' };
  const server = createServer((request, response) => {
    const isKeys = request.url === '/keys';
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(isKeys ? { keys: [key] } : { issuer, jwks_uri: `${issuer}/keys` }));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  const token = await new SignJWT({ client_id: 'bench' })
    .setProtectedHeader({ alg: 'ES256', kid: '1', typ: 'at+jwt' })
    .setIssuer(issuer)
    .setSubject('bench')
    .setAudience(AUDIENCE)
    .setJti('1')
    .setIssuedAt()
    .setExpirationTime('1d')
    .sign(privateKey);
  return { issuer, token, stop: () => server.close() };
}

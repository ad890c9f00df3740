import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { JWK } from 'jose';
import type { Configuration, SigningAlgorithmWithNone } from 'oidc-provider';
import { findFreePort } from './free-port';

/** The audience of the access tokens of {@link OpenIdProvider}, and the id of its only client. */
export const AUDIENCE = 'plants-api';

/** The header and claims of an access token, which a test may change before the provider signs them. */
export interface TokenDraft {
  header: Record<string, unknown>;
  payload: Record<string, unknown>;
}
type Redraft = (draft: TokenDraft) => unknown;

/** A private signing key with a unique `kid`. */
export type SigningKey = JWK & { readonly kid: string };

const RESOURCE = 'https://plants.example';
const TOKEN_TTL_SECONDS = 24 * 60 * 60;
let keyCount = 0;

export function makeKey(alg: 'RS256' | 'ES256' = 'ES256'): SigningKey {
  const { privateKey } =
    alg === 'RS256'
      ? generateKeyPairSync('rsa', { modulusLength: 2048 })
      : generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return { ...privateKey.export({ format: 'jwk' }), alg, use: 'sig', kid: `key-${++keyCount}` };
}

/** A real OpenID Connect provider on its own port. A test can stop it, start it again and rotate its key. */
export class OpenIdProvider {
  /** The number of requests for the keys. */
  fetches = 0;
  private server?: Server | undefined;
  private redraft: Redraft = () => undefined;

  private constructor(
    readonly issuer: string,
    /** Where it listens. */
    readonly url: string,
  ) {}

  /** @param issuer the issuer that it names in tokens; by default, the URL at which it listens */
  static async start(key?: SigningKey, issuer?: string): Promise<OpenIdProvider> {
    const url = `http://127.0.0.1:${await findFreePort()}`;
    const provider = new OpenIdProvider(issuer ?? url, url);
    await provider.start(key);
    return provider;
  }

  /** Starts the provider. It signs with this key. */
  async start(key = makeKey()): Promise<void> {
    // oidc-provider prints warnings about production use.
    const spies = [jest.spyOn(console, 'warn'), jest.spyOn(console, 'info')];
    for (const spy of spies) spy.mockImplementation();
    const { default: Provider } = await import('oidc-provider');
    const handle = new Provider(this.issuer, this.configure(key)).callback();
    for (const spy of spies) spy.mockRestore();
    this.server = createServer((request, response) => {
      if (request.url === '/jwks') this.fetches++;
      // No client may keep a connection to a provider that stops.
      response.setHeader('Connection', 'close');
      void handle(request, response);
    }).listen(Number(new URL(this.url).port), '127.0.0.1');
    await once(this.server, 'listening');
  }

  async stop(): Promise<void> {
    const { server } = this;
    if (server === undefined) return;
    this.server = undefined;
    server.close();
    server.closeAllConnections();
    await once(server, 'close');
  }

  /** Requests an access token for {@link AUDIENCE} by the client credentials grant (RFC 6749 section 4.4). */
  async requestAccessToken(redraft: Redraft = () => undefined): Promise<string> {
    this.redraft = redraft;
    const response = await fetch(`${this.url}/token`, {
      method: 'POST',
      headers: { authorization: `Basic ${btoa(`${AUDIENCE}:secret`)}` },
      body: new URLSearchParams({ grant_type: 'client_credentials', resource: RESOURCE }),
    });
    const { access_token: token } = (await response.json()) as { access_token?: string };
    if (token === undefined) throw new Error(`no token: ${response.status}`);
    return token;
  }

  private configure(key: SigningKey): Configuration {
    const alg = key.alg as SigningAlgorithmWithNone;
    return {
      jwks: { keys: [key] },
      clients: [
        {
          client_id: AUDIENCE,
          client_secret: 'secret',
          grant_types: ['client_credentials'],
          redirect_uris: [],
          response_types: [],
          id_token_signed_response_alg: alg,
        },
      ],
      ttl: { ClientCredentials: TOKEN_TTL_SECONDS },
      features: {
        devInteractions: { enabled: false },
        clientCredentials: { enabled: true },
        resourceIndicators: {
          enabled: true,
          getResourceServerInfo: () => ({
            audience: AUDIENCE,
            scope: '',
            accessTokenTTL: TOKEN_TTL_SECONDS,
            accessTokenFormat: 'jwt',
            jwt: { sign: { alg: key.alg as 'ES256' } },
          }),
        },
      },
      formats: {
        customizers: {
          jwt: (_ctx, _token, jwt) => {
            jwt.header ??= {};
            this.redraft({ header: jwt.header, payload: jwt.payload });
          },
        },
      },
    };
  }
}

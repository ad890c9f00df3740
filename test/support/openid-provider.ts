import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { JWK } from 'jose';
import type Provider from 'oidc-provider';
import type { Configuration } from 'oidc-provider';
import { findFreePort } from './free-port';

/** The audience of the access tokens of {@link OpenIdProvider}, and the id of its only client. */
export const AUDIENCE = 'plants-api';

/** The header and claims of an access token, which a test may change before the provider signs them. */
export interface TokenDraft {
  header: Record<string, unknown>;
  payload: Record<string, unknown>;
}

/** A private signing key with a unique `kid`. */
export type SigningKey = JWK & { readonly kid: string };

const RESOURCE = 'https://plants.example';
const SCOPES = ['plants:create', 'plants:read'];
const TOKEN_TTL_SECONDS = 24 * 60 * 60;
let keyCount = 0;

export function makeKey(alg: 'RS256' | 'ES256' | 'EdDSA'): SigningKey {
  const { privateKey } = {
    RS256: () => generateKeyPairSync('rsa', { modulusLength: 2048 }),
    ES256: () => generateKeyPairSync('ec', { namedCurve: 'P-256' }),
    EdDSA: () => generateKeyPairSync('ed25519'),
  }[alg]();
  return { ...privateKey.export({ format: 'jwk' }), alg, use: 'sig', kid: `key-${++keyCount}` };
}

/** Returns the public key, as the provider publishes it. */
export function toPublicKey({ kid, ...jwk }: SigningKey): JWK {
  return { ...createPublicKey({ key: jwk, format: 'jwk' }).export({ format: 'jwk' }), kid };
}

/** A real OpenID Connect provider on its own port. A test can stop it, start it again and rotate its keys. */
export class OpenIdProvider {
  /** Emits `fetch` on each request for the keys. */
  readonly events = new EventEmitter();
  /** The number of requests for the keys. */
  fetches = 0;
  private server?: Server | undefined;
  private alg = '';
  private redraft: (draft: TokenDraft) => void = () => undefined;

  private constructor(
    readonly issuer: string,
    private readonly port: number,
  ) {}

  static async start(...keys: SigningKey[]): Promise<OpenIdProvider> {
    const port = await findFreePort();
    const provider = new OpenIdProvider(`http://127.0.0.1:${port}`, port);
    await provider.start(...keys);
    return provider;
  }

  /** Starts the provider. It signs with the first key. */
  async start(...keys: SigningKey[]): Promise<void> {
    this.alg = keys[0]?.alg ?? '';
    const provider = await createProvider(this.issuer, this.configuration(keys));
    const handle = provider.callback();
    this.server = createServer((request, response) => {
      if (request.url === '/jwks') {
        this.fetches++;
        this.events.emit('fetch');
      }
      // No client may keep a connection to a provider that stops.
      response.setHeader('Connection', 'close');
      void handle(request, response);
    }).listen(this.port, '127.0.0.1');
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
  async requestAccessToken({
    scope = '',
    redraft = () => undefined,
  }: { scope?: string; redraft?: (draft: TokenDraft) => void } = {}): Promise<string> {
    this.redraft = redraft;
    const response = await fetch(`${this.issuer}/token`, {
      method: 'POST',
      headers: { authorization: `Basic ${btoa(`${AUDIENCE}:secret`)}` },
      body: new URLSearchParams({ grant_type: 'client_credentials', resource: RESOURCE, scope }),
    });
    const { access_token: token } = (await response.json()) as { access_token?: string };
    if (token === undefined) throw new Error(`no token: ${response.status}`);
    return token;
  }

  private configuration(keys: SigningKey[]): Configuration {
    return {
      jwks: { keys },
      clients: [
        {
          client_id: AUDIENCE,
          client_secret: 'secret',
          grant_types: ['client_credentials'],
          redirect_uris: [],
          response_types: [],
          id_token_signed_response_alg: this.alg as 'ES256',
          scope: SCOPES.join(' '),
        },
      ],
      scopes: SCOPES,
      ttl: { ClientCredentials: TOKEN_TTL_SECONDS },
      features: {
        devInteractions: { enabled: false },
        clientCredentials: { enabled: true },
        resourceIndicators: {
          enabled: true,
          getResourceServerInfo: () => ({
            audience: AUDIENCE,
            scope: SCOPES.join(' '),
            accessTokenTTL: TOKEN_TTL_SECONDS,
            accessTokenFormat: 'jwt',
            jwt: { sign: { alg: this.alg as 'ES256' } },
          }),
        },
      },
      formats: {
        customizers: {
          jwt: (_ctx, _token, jwt) => {
            this.redraft({ header: (jwt.header ??= {}), payload: jwt.payload });
          },
        },
      },
    };
  }
}

/** Creates the provider without the warnings about production use that oidc-provider prints. */
async function createProvider(issuer: string, configuration: Configuration): Promise<Provider> {
  const spies = [jest.spyOn(console, 'warn'), jest.spyOn(console, 'info')];
  for (const spy of spies) spy.mockImplementation();
  const { default: OidcProvider } = await import('oidc-provider');
  const provider = new OidcProvider(issuer, configuration);
  for (const spy of spies) spy.mockRestore();
  return provider;
}

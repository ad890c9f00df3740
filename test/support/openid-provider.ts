import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { JWK } from 'jose';
import type Provider from 'oidc-provider';
import type { Configuration } from 'oidc-provider';
import { freePort } from './free-port';

/** What the access tokens of {@link OpenIdProvider} are for, and the id of its one client. */
export const AUDIENCE = 'plants-api';

/** Header and claims of an access token, to be changed before the provider signs them. */
export interface Draft {
  header: Record<string, unknown>;
  payload: Record<string, unknown>;
}

/** A private signing key with a `kid` of its own. */
export type SigningKey = JWK & { readonly kid: string };

const RESOURCE = 'https://plants.example';
const SCOPES = ['plants:create', 'plants:read'];
const DAY = 24 * 60 * 60;
let keysMade = 0;

export function makeKey(alg: 'RS256' | 'ES256' | 'EdDSA'): SigningKey {
  const { privateKey } = {
    RS256: () => generateKeyPairSync('rsa', { modulusLength: 2048 }),
    ES256: () => generateKeyPairSync('ec', { namedCurve: 'P-256' }),
    EdDSA: () => generateKeyPairSync('ed25519'),
  }[alg]();
  return { ...privateKey.export({ format: 'jwk' }), alg, use: 'sig', kid: `key-${++keysMade}` };
}

/** What everybody may know of a key. */
export function publicPart({ kid, ...jwk }: SigningKey): JWK {
  return { ...createPublicKey({ key: jwk, format: 'jwk' }).export({ format: 'jwk' }), kid };
}

/** A real OpenID Connect provider on a port of its own, which can go away, come back and rotate keys. */
export class OpenIdProvider {
  /** Emits `fetch` whenever somebody asks for the keys. */
  readonly events = new EventEmitter();
  /** How often somebody has asked for the keys. */
  fetches = 0;
  private server?: Server | undefined;
  private alg = '';
  private redraft: (draft: Draft) => void = () => undefined;

  private constructor(
    readonly issuer: string,
    private readonly port: number,
  ) {}

  static async start(...keys: SigningKey[]): Promise<OpenIdProvider> {
    const port = await freePort();
    const provider = new OpenIdProvider(`http://127.0.0.1:${port}`, port);
    await provider.start(...keys);
    return provider;
  }

  /** Comes up, and signs with the first of the keys. */
  async start(...keys: SigningKey[]): Promise<void> {
    this.alg = keys[0]?.alg ?? '';
    const provider = await makeProvider(this.issuer, this.configuration(keys));
    const answer = provider.callback();
    this.server = createServer((request, response) => {
      if (request.url === '/jwks') {
        this.fetches++;
        this.events.emit('fetch');
      }
      // Nobody shall keep a connection to a provider that goes away.
      response.setHeader('Connection', 'close');
      void answer(request, response);
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

  /** An access token by the client credentials grant, RFC 6749 section 4.4, for {@link AUDIENCE}. */
  async accessToken({
    scope = '',
    redraft = () => undefined,
  }: { scope?: string; redraft?: (draft: Draft) => void } = {}): Promise<string> {
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
      ttl: { ClientCredentials: DAY },
      features: {
        devInteractions: { enabled: false },
        clientCredentials: { enabled: true },
        resourceIndicators: {
          enabled: true,
          getResourceServerInfo: () => ({
            audience: AUDIENCE,
            scope: SCOPES.join(' '),
            accessTokenTTL: DAY,
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

/** oidc-provider warns on import and on start of what a deployment should mind. */
async function makeProvider(issuer: string, configuration: Configuration): Promise<Provider> {
  const quiet = [jest.spyOn(console, 'warn'), jest.spyOn(console, 'info')];
  for (const spy of quiet) spy.mockImplementation();
  const { default: OidcProvider } = await import('oidc-provider');
  const provider = new OidcProvider(issuer, configuration);
  for (const spy of quiet) spy.mockRestore();
  return provider;
}

import { type ServiceAuthOptions, validateAuthOptions } from './auth.options';

const ISSUER = { issuer: 'https://id.example.org', audience: 'plants' };

describe('validateAuthOptions', () => {
  it.each<ServiceAuthOptions>([
    ISSUER,
    { ...ISSUER, scope: ' plants:create  plants:read ' },
    { ...ISSUER, audience: ['plants', 'name with spaces'] },
    { ...ISSUER, issuer: 'http://localhost:10081', jwksUrl: 'https://id.example.org:443/keys' },
    { tokens: ['a', 'b scope=create'] },
  ])('accepts %j', (options) => {
    expect(validateAuthOptions(options)).toEqual([]);
  });

  // White space would make another issuer, another audience, or the scope "" of it.
  it.each<[string, ServiceAuthOptions]>([
    ['auth.issuer must be an https: URL', { ...ISSUER, issuer: ' https://id.example.org' }],
    ['auth.issuer must be an https: URL', { ...ISSUER, issuer: ['https://a', 'https://b\n'] }],
    ['auth.issuer must be an https: URL', { ...ISSUER, issuer: [] }],
    ['auth.audience must not be empty', { ...ISSUER, audience: [] }],
    ['auth.audience must not be empty', { ...ISSUER, audience: ' plants' }],
    ['auth.audience must not be empty', { ...ISSUER, audience: ['plants', ''] }],
    ['auth.scope must be scopes', { ...ISSUER, scope: '' }],
    ['auth.metricsScope must be scopes', { ...ISSUER, metricsScope: ' ' }],
    ['auth.issuer must not have the port 10080, ', { ...ISSUER, issuer: 'http://[::1]:10080/a' }],
    ['auth.jwksUrl must not have the port 6000, ', { ...ISSUER, jwksUrl: 'https://a:6000/keys' }],
    ['auth.metricsScope requires auth.issuer.', { metricsScope: 'plants:metrics' }],
  ])('reports %j', (message, options) => {
    expect(validateAuthOptions(options).map((error) => error.message)).toEqual([
      expect.stringMatching(new RegExp(`^${message}`)),
    ]);
  });
});

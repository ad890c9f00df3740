import { once } from 'node:events';
import { TestApplication, TOKEN } from '../support/application';
import { errorBodies } from '../support/error-bodies';
import { AUDIENCE, makeKey, OpenIdProvider } from '../support/openid-provider';
import { exchange, openConnection, readResponses } from '../support/wire';

const BODY = '{"id":1,"name":"Fern"}';

describe('a create request that waits for 100 Continue', () => {
  let provider: OpenIdProvider;
  let application: TestApplication;
  let url: URL;
  beforeAll(async () => {
    provider = await OpenIdProvider.start(makeKey('ES256'));
    application = await TestApplication.start({
      AUTH_TOKENS: `${TOKEN},scraper scope=metrics`,
      AUTH_ISSUER: provider.issuer,
      AUTH_AUDIENCE: AUDIENCE,
    });
    url = await application.listen();
  });
  afterAll(async () => {
    await application.stop();
    await provider.stop();
  });

  const GOOD = `Authorization: Bearer ${TOKEN}\r\n`;
  const head = (authorization: string, length: number, path = '/plants') =>
    `POST ${path} HTTP/1.1\r\nHost: x\r\n${authorization}Expect: 100-continue\r\n` +
    `Content-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`;

  it.each([
    ['no token', head('', 900_000), errorBodies.missingCredentials],
    ['a bad token', head('Authorization: Bearer x\r\n', 9), errorBodies.invalidToken],
    ['a bad JWT', head('Authorization: Bearer a.b.c\r\n', 9), errorBodies.invalidToken],
    ['another scope', head('Authorization: Bearer scraper\r\n', 9), errorBodies.forbidden],
    ['a body that is too long', head(GOOD, 2 ** 21), errorBodies.tooLarge],
    ['a path that there is not', head(GOOD, 9, '/nothing'), errorBodies.notFound],
  ])('gets an error instead of 100 Continue when it has %s', async (_what, request, body) => {
    const status = Math.floor(body.error / 100);

    expect(await exchange(url, request)).toMatchObject([
      { status, body, headers: { connection: 'close' } },
    ]);
  });

  it('gets 100 Continue when it has a valid JWT', async () => {
    const socket = openConnection(url);
    const fields = `Connection: close\r\nAuthorization: Bearer ${await provider.requestAccessToken()}\r\n`;
    socket.write(head(fields, BODY.length));
    await once(socket, 'readable');
    socket.write(BODY);

    expect(await readResponses(socket)).toMatchObject([
      { status: 100 },
      { status: 200, headers: { connection: 'close' } },
    ]);
  });
});

import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { Agent, type IncomingMessage, request } from 'node:http';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { TestApplication } from '../support/application';
import { errorBodies } from '../support/error-bodies';
import { makeFolder, removeFolder } from '../support/folder';
import { until } from '../support/until';

/** The token of a connection is parsed and hashed once. Each request of the connection is judged all the same. */
describe('the token of a kept connection', () => {
  let folder: string;
  let file: string;
  let application: TestApplication;
  let url: URL;
  let agent: Agent;
  const ports = new Set<number | undefined>();
  let lastId = 0;

  beforeEach(async () => {
    folder = makeFolder();
    file = join(folder, 'tokens.txt');
    writeFileSync(file, 'old-token\nother-token\ncreate-token scope=create\n');
    application = await TestApplication.start({
      AUTH_TOKENS: undefined,
      AUTH_TOKENS_FILE: file,
    });
    url = await application.listen();
    agent = new Agent({ keepAlive: true, maxSockets: 1 });
    ports.clear();
  });
  afterEach(async () => {
    agent.destroy();
    await application.stop();
    removeFolder(folder);
  });

  /** Sends a request on the one connection, and gives back the status and what is not a success. */
  async function send(method: string, path: string, token: string): Promise<unknown[]> {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const message = request(new URL(path, url), { agent, method, headers });
    message.end(method === 'POST' ? `{"id":${++lastId},"name":"Fern"}` : undefined);
    const [response] = (await once(message, 'response')) as [IncomingMessage];
    ports.add(response.socket.localPort);
    const { statusCode } = response;
    if (statusCode === 200) {
      response.resume();
      await once(response, 'end');
      return [statusCode];
    }
    return [statusCode, await json(response)];
  }
  const create = (token: string) => send('POST', '/plants', token);

  it('is the one that each request has', async () => {
    expect(await create('old-token')).toEqual([200]);
    expect(await create('old-tokem')).toEqual([401, errorBodies.invalidToken]);
    expect(await create('old-toke')).toEqual([401, errorBodies.invalidToken]);
    expect(await create('old-token')).toEqual([200]);
    expect(await create('other-token')).toEqual([200]);
    expect(ports.size).toBe(1);
  });

  it('is refused once it is removed from the list', async () => {
    expect(await create('old-token')).toEqual([200]);

    writeFileSync(file, 'other-token\n');
    await until(async () => (await create('old-token'))[0] === 401);

    expect(await create('other-token')).toEqual([200]);
    expect(ports.size).toBe(1);
  });

  it('is refused once it has expired', async () => {
    const expiry = new Date(Date.now() + 4000).toISOString();
    writeFileSync(file, `old-token caller ${expiry}\n`);
    await until(async () => (await create('other-token'))[0] === 401);
    expect(await create('old-token')).toEqual([200]);

    await until(async () => (await create('old-token'))[0] === 401);

    expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(expiry));
    expect(ports.size).toBe(1);
  });

  it('is judged by the scope of each route', async () => {
    expect(await create('create-token')).toEqual([200]);
    expect(await send('GET', '/metrics', 'create-token')).toEqual([
      403,
      expect.objectContaining({ error: 40300 }),
    ]);
    expect(await send('GET', '/metrics', 'old-token')).toEqual([200]);
    expect(ports.size).toBe(1);
  });
});

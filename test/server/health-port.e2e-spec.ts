import { errorBodies } from '../support/error-bodies';
import { useServiceHome } from '../support/service-process';
import { exchange } from '../support/wire';

const home = useServiceHome();

it('HEALTH_PORT has the rules of every head, and answers with the Error body', async () => {
  const service = await home.start({ HEALTH_PORT: '0' });
  const [, url = ''] = await service.says(/also at (http:[^"\s]+)/);
  const send = (request: string) => exchange(new URL(url), request);
  const get = (fields: string) => send(`GET /health/live HTTP/1.1\r\n${fields}\r\n`);

  const { malformedRequest, missingHost, headersTooLarge, notFound } = errorBodies;
  expect(await send('garbage\r\n\r\n')).toMatchObject([{ body: malformedRequest }]);
  expect(await get('')).toMatchObject([{ body: missingHost }]);
  expect(await get(`Host: x\r\n${'a:\r\n'.repeat(300)}`)).toMatchObject([
    { body: headersTooLarge },
  ]);
  const post = 'POST /plants HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n';
  expect(await send(post)).toMatchObject([{ body: notFound }]);
  expect(await get('Host: x\r\nConnection: close\r\n')).toMatchObject([{ status: 200 }]);
});

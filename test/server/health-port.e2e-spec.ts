import { errorBodies } from '../support/error-bodies';
import { useServiceHome } from '../support/service-process';
import { exchange } from '../support/wire';

const home = useServiceHome();

it.each([
  ['garbage\r\n\r\n', errorBodies.malformedRequest],
  ['GET /health/live HTTP/1.1\r\n\r\n', errorBodies.missingHost],
  [
    `GET /health/live HTTP/1.1\r\nHost: x\r\n${'a:\r\n'.repeat(300)}\r\n`,
    errorBodies.headersTooLarge,
  ],
  ['GET /health/live HTTP/1.1\r\nHost: x\r\nExpect: x\r\n\r\n', errorBodies.expectationFailed],
  ['POST /plants HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n', errorBodies.notFound],
])(
  'HEALTH_PORT has the rules of every head, and answers %j with the Error body',
  async (request, body) => {
    const service = await home.start({ HEALTH_PORT: '0' });
    const [, url = ''] = await service.says(/also at (http:[^"\s]+)/);

    const answers = await exchange(new URL(url), request);

    expect(answers).toMatchObject([{ body }]);
    expect(
      await exchange(
        new URL(url),
        'GET /health/live HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
      ),
    ).toMatchObject([{ status: 200 }]);
  },
);

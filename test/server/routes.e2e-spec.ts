import { TestApplication, TOKEN } from '../support/application';
import { errorBodies } from '../support/error-bodies';
import { exchange } from '../support/wire';

describe('paths and methods', () => {
  const application = TestApplication.use();

  it.each([
    ...['/', '/plant', '/plants/', '/plants/1', '//plants', '/PLANTS', '/plants%2f'],
    ...['/:a(', '/:a((x+)+)'],
  ])('answers 404 at %s, with or without a token', async (url) => {
    for (const authorization of [undefined, `Bearer ${TOKEN}`]) {
      const response = await application.app.inject({
        method: 'POST',
        url,
        headers: { ...(authorization ? { authorization } : {}), 'content-type': '@' },
        payload: '{',
      });

      expect(response.statusCode).toBe(404);
      expect(response.json()).toEqual(errorBodies.notFound);
    }
  });

  it.each(['/docs/', '/docs/index.html'])('leads a browser from %s to /docs', async (path) => {
    const response = await fetch(new URL(path, application.url), { redirect: 'manual' });

    expect([response.status, response.headers.get('location')]).toEqual([308, '../docs']);
  });

  it.each(['text/html', 'application/xhtml+xml,text/html;q=0.9,*/*;q=0.8'])(
    'leads a browser from / to /docs: %s',
    async (accept) => {
      const response = await fetch(application.url, { headers: { accept }, redirect: 'manual' });

      expect(response.status).toBe(302);
      expect(new URL(response.headers.get('location') ?? '', application.url).pathname).toBe(
        '/docs',
      );
      expect(response.headers.get('vary')).toBe('Accept');
    },
  );

  it.each(['*/*', 'application/json'])('answers 404 at / to others: %s', async (accept) => {
    const response = await fetch(application.url, { headers: { accept } });

    expect(response.status).toBe(404);
    expect(await response.json()).toEqual(errorBodies.notFound);
  });

  it.each(['GET', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'QUERY'] as const)(
    'answers 405 to %s /plants, and names the allowed method',
    async (method) => {
      const response = await application.app.inject({
        method: method as 'GET',
        url: '/plants?x=1',
      });

      expect(response.statusCode).toBe(405);
      expect(response.headers.allow).toBe('POST');
      expect(response.json()).toEqual(errorBodies.methodNotAllowed);
    },
  );

  it.each(['/plants', 'http://x/plants', '/pl%61nts'])('answers 405 to GET %s', async (target) => {
    const answers = await exchange(
      application.url,
      `GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`,
    );

    expect(answers).toMatchObject([{ status: 405, headers: { allow: 'POST' } }]);
  });

  it('answers 404 to a body beyond the limit without reading it', async () => {
    const response = await application.app.inject({
      method: 'POST',
      url: '/nothing',
      payload: 'x'.repeat(2 ** 21),
    });

    expect(response.json()).toEqual(errorBodies.notFound);
  });
});

import { TestApplication, TOKEN } from '../support/application';
import { errorBodies } from '../support/error-bodies';
import { exchange } from '../support/wire';

describe('paths and methods', () => {
  const application = TestApplication.use();

  it.each([
    ...['/', '/plant', '/plants/', '/plants/1', '//plants', '/PLANTS', '/plants%2f'],
    ...['/:a(', '/:a((x+)+)'],
  ])('answers 404 at %s, with or without a token, whatever the body', async (url) => {
    for (const authorization of ['', `Bearer ${TOKEN}`]) {
      const headers = { authorization, 'content-type': '@' };
      const payload = '{'.repeat(2 ** 21);
      const response = await application.app.inject({ method: 'POST', url, headers, payload });

      expect(response.statusCode).toBe(404);
      expect(response.json()).toEqual(errorBodies.notFound);
    }
  });

  it.each([
    ['/docs/', '*/*', 308, '../docs', null],
    ['/docs/index.html', '*/*', 308, '../docs', null],
    ['/', 'text/html', 302, 'docs', 'Accept'],
    ['/', 'application/xhtml+xml,text/html;q=0.9,*/*;q=0.8', 302, 'docs', 'Accept'],
  ])('leads a browser from %s to /docs: %s', async (path, accept, ...expected) => {
    const url = new URL(path, application.url);
    const { status, headers } = await fetch(url, { headers: { accept }, redirect: 'manual' });

    expect([status, headers.get('location'), headers.get('vary')]).toEqual(expected);
  });

  it.each(['*/*', 'application/json'])('answers 404 at / to others: %s', async (accept) => {
    const response = await fetch(application.url, { headers: { accept } });

    expect(response.status).toBe(404);
    expect(await response.json()).toEqual(errorBodies.notFound);
  });

  it.each([
    ...['GET', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'QUERY'].map((each) => `${each} /plants?x=1`),
    ...['GET http://x/plants', 'GET /pl%61nts'],
  ])('answers 405 to %s, and names the allowed method', async (line) => {
    const request = `${line} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`;

    expect(await exchange(application.url, request)).toMatchObject([
      { status: 405, headers: { allow: 'POST' }, body: errorBodies.methodNotAllowed },
    ]);
  });
});

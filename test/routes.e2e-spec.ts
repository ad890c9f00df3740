import { TestApplication, TOKEN } from './support/application';
import { errorBodies } from './support/error-bodies';

describe('paths and methods', () => {
  let application: TestApplication;
  beforeAll(async () => {
    application = await TestApplication.start();
  });
  afterAll(() => application.stop());

  it.each(['/', '/plant', '/plants/', '/plants/1', '//plants', '/PLANTS', '/plants%2f', '/docs/x'])(
    'answers 404 at %s, with or without a token',
    async (url) => {
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
    },
  );

  it.each(['GET', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'QUERY'] as const)(
    'answers 405 to %s /plants, and names the method allowed',
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

  it('does not take another method from a header', async () => {
    const response = await application.app.inject({
      method: 'GET',
      url: '/plants',
      headers: { 'x-http-method-override': 'POST', authorization: `Bearer ${TOKEN}` },
    });

    expect(response.statusCode).toBe(405);
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

/** Runs the client in Chromium, which refuses more than Node.js does. */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { TestApplication, TOKEN } from '../support/application';
import { TestBrowser } from '../support/browser';
import { listen } from '../support/listen';

const MODULE = readFileSync(join(__dirname, '../../dist/client/index.mjs'));

describe('PlantStoreClient in a page of another origin in Chromium', () => {
  const pages = createServer(({ url }, response) => {
    if (url === '/') response.setHeader('Content-Type', 'text/html').end('<!doctype html>');
    else if (url === '/moved/plants') response.writeHead(307, { Location: '/' }).end();
    else response.setHeader('Content-Type', 'text/javascript').end(MODULE);
  });
  let origin: string;
  const browser = TestBrowser.use();
  let page: Page;
  beforeAll(async () => {
    ({ origin } = await listen(pages));
    page = await browser.newPage();
    await page.goto(origin);
  });
  afterAll(() => {
    pages.close();
  });

  it('creates a plant, and reports a replay', async () => {
    const application = await TestApplication.start({ CORS_ORIGINS: origin });
    const url = await application.listen();

    const created = await page.evaluate(`(async () => {
      const { PlantStoreClient } = await import('/client.mjs');
      const client = new PlantStoreClient({ url: '${url.origin}', token: '${TOKEN}' });
      const options = { idempotencyKey: 'page-key' };
      const plant = { id: 9007199254740993n, name: 'Fern' };
      await client.create(plant, options);
      return client.create(plant, options);
    })()`);

    expect(created).toEqual({ name: 'Fern', isReplay: true });
    expect(application.store.plants()).toEqual([{ id: 9_007_199_254_740_993n, name: 'Fern' }]);
    await application.stop();
  });

  it('reports a redirect without following it, although browsers hide its status', async () => {
    const failure = await page.evaluate(`(async () => {
      const { PlantStoreClient } = await import('/client.mjs');
      const client = new PlantStoreClient({ url: '${origin}/moved', token: '${TOKEN}' });
      const { message, outcome } = await client.create({ id: 1, name: 'Fern' }).catch((error) => error);
      return { message, outcome };
    })()`);

    const message = `A redirect from ${origin}/moved/plants is not a plant store response. Check the URL. Received: nothing`;
    expect(failure).toEqual({ message, outcome: 'unknown' });
  });
});

import { readFileSync } from 'node:fs';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { TestApplication, TOKEN } from '../support/application';
import { TestBrowser } from '../support/browser';

const MODULE = readFileSync(join(__dirname, '../../dist/client/index.mjs'));

describe('a page of another origin in Chromium', () => {
  it('creates a plant with the client, and reads that it was stored before', async () => {
    const pages = createServer(({ url }, response) => {
      if (url === '/') response.setHeader('Content-Type', 'text/html').end('<!doctype html>');
      else response.setHeader('Content-Type', 'text/javascript').end(MODULE);
    });
    await once(pages.listen(0, '127.0.0.1'), 'listening');
    const origin = `http://127.0.0.1:${(pages.address() as AddressInfo).port}`;
    const application = await TestApplication.start({ CORS_ORIGINS: origin });
    const url = await application.listen();
    const browser = await TestBrowser.start();
    const page = await (await browser.newContext({})).newPage();
    await page.goto(origin);

    const answer = await page.evaluate(`(async () => {
      const { PlantStoreClient } = await import('/client.mjs');
      const client = new PlantStoreClient({ url: '${url.origin}', token: '${TOKEN}' });
      const options = { idempotencyKey: 'of-the-page' };
      const plant = { id: 9007199254740993n, name: 'Fern' };
      await client.create(plant, options);
      return client.create(plant, options);
    })()`);

    expect(answer).toEqual({ name: 'Fern', isReplay: true });
    expect(application.store.plants()).toEqual([{ id: 9_007_199_254_740_993n, name: 'Fern' }]);
    await Promise.all([browser.stop(), application.stop()]);
    pages.close();
  }, 60_000);
});

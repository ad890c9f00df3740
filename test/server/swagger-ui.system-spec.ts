/** Uses Swagger UI in Chromium, from npm. */
import { createServer, request } from 'node:http';
import type { Page, Request } from 'playwright-core';
import { TestApplication, TOKEN } from '../support/application';
import { TestBrowser } from '../support/browser';
import { listen } from '../support/listen';

describe('Swagger UI in Chromium', () => {
  const application = TestApplication.use();
  const browser = TestBrowser.use();
  let page: Page;
  /** The messages that the page wrote to the console, and the errors that it threw. */
  let pageErrors: string[];
  let requests: Request[];
  beforeEach(async () => {
    application.store.removePlants();
    pageErrors = [];
    requests = [];
    page = await browser.newPage();
    page.on('console', (message) => pageErrors.push(message.text()));
    page.on('pageerror', (error) => pageErrors.push(error.message));
    page.on('request', (each) => requests.push(each));
    await open();
  });
  afterEach(() => page.close());

  const executeButton = () =>
    page.locator('#operations-Plants-createPlant').getByRole('button', { name: 'Execute' });

  async function open(url = new URL('/docs', application.url)): Promise<void> {
    await page.goto(url.href);
    await executeButton().waitFor();
  }

  async function authorize(): Promise<void> {
    const dialog = page.locator('.modal-ux');
    await page.locator('.scheme-container .authorize').click();
    await dialog.getByRole('textbox').fill(TOKEN);
    await dialog.getByRole('button', { name: 'Apply credentials' }).click();
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
  }

  /** Sends the request, and returns the status and the body that the page then shows. */
  async function execute(): Promise<{ status: string; body: unknown }> {
    await executeButton().click();
    const response = page.locator('.live-responses-table .response');
    const status = await response.locator('.response-col_status').innerText();
    const body = await response.locator('.microlight').first().innerText();
    return { status: status.trim().slice(0, 3), body: JSON.parse(body) };
  }

  it('creates a plant from the prefilled example, without errors or requests to other origins', async () => {
    await authorize();

    expect(await execute()).toEqual({ status: '200', body: { name: 'Fern', tag: 'shade' } });

    expect(application.store.plants()).toHaveLength(1);
    expect(pageErrors).toEqual([]);
    const urls = requests.map((each) => new URL(each.url())).filter((url) => url.host !== '');
    expect(new Set(urls.map(({ origin }) => origin))).toEqual(new Set([application.url.origin]));
  });

  it('sends and shows every digit of an id', async () => {
    await authorize();
    await page.locator('textarea').fill('{"id": 9007199254740993, "name": "Ginkgo"}');

    expect(await execute()).toEqual({ status: '200', body: { name: 'Ginkgo' } });

    expect(application.store.plants()).toMatchObject([{ id: 9_007_199_254_740_993n }]);
    expect(await page.locator('.curl').innerText()).toContain('9007199254740993');
  });

  it('creates a plant when a proxy adds a path prefix', async () => {
    const { port } = application.url;
    const proxy = createServer((incoming, outgoing) => {
      const { url = '', method, headers } = incoming;
      // Paths without the prefix get 404, as behind a proxy.
      const path = url.startsWith('/store/') ? url.slice('/store'.length) : '/nothing';
      const forwarded = request({ port, path, method, headers }, (response) => {
        response.pipe(outgoing.writeHead(response.statusCode ?? 502, response.headers));
      });
      incoming.pipe(forwarded);
    });
    await open(new URL('/store/docs', await listen(proxy)));
    await authorize();

    expect((await execute()).status).toBe('200');

    const creations = requests.filter((each) => each.method() === 'POST');
    expect(creations.map((each) => new URL(each.url()).pathname)).toEqual(['/store/plants']);
    proxy.closeAllConnections();
    proxy.close();
  });
});

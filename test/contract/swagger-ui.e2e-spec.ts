import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type BrowserContext, type Locator, type Page } from 'playwright-core';
import { TestApplication, TOKEN } from '../support/application';
import { TestBrowser } from '../support/browser';
import { until } from '../support/until';

jest.setTimeout(60_000);

const DESKTOP = { width: 1280, height: 900 };
const PHONE = { width: 375, height: 740 };

/** What reaches out of the window or of the operation's box. Runs in the page. */
const OUTSIDE = `(() => {
  const outside = [];
  const { scrollWidth, clientWidth } = document.documentElement;
  if (scrollWidth > clientWidth) outside.push('the page: ' + scrollWidth);
  for (const element of document.querySelectorAll('button, input, select, textarea, pre, table, p')) {
    const box = element.closest('.opblock, .modal-ux, body').getBoundingClientRect();
    const { left, right, width } = element.getBoundingClientRect();
    if (width > 0 && (left < box.left || right > box.right))
      outside.push(element.tagName + '.' + element.className + ' ' + left + '-' + right);
  }
  return outside;
})()`;

/** How bright the ground of the page is, 0 to 255. Runs in the page. */
const GROUND = `(() => {
  const groundOf = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const { backgroundColor } = getComputedStyle(at);
      const [red, green, blue, alpha = 1] = (backgroundColor.match(/[\\d.]+/g) ?? []).map(Number);
      if (alpha === 1) return [red, green, blue];
    }
    return getComputedStyle(document.documentElement).colorScheme === 'dark' ? [18, 18, 18] : [255, 255, 255];
  };
  return Math.max(...groundOf(document.querySelector('.opblock-description-wrapper')), ...groundOf(document.body));
})()`;

describe('Swagger UI in Chromium', () => {
  const application = TestApplication.use();
  let browser: TestBrowser;
  let context: BrowserContext;
  let page: Page;
  /** What the page wrote to the console or threw. */
  let pageErrors: string[];
  let requested: URL[];
  beforeAll(async () => {
    browser = await TestBrowser.start();
    context = await browser.newContext({ viewport: DESKTOP });
    page = await context.newPage();
    page.on('console', (message) => pageErrors.push(message.text()));
    page.on('pageerror', (error) => pageErrors.push(error.message));
    page.on('request', (request) => requested.push(new URL(request.url())));
  });
  beforeEach(async () => {
    application.store.removePlants();
    pageErrors = [];
    requested = [];
    await page.setViewportSize(DESKTOP);
    await page.emulateMedia({ colorScheme: null });
    await open();
  });
  afterEach(() => page.evaluate('localStorage.clear(), sessionStorage.clear()'));
  afterAll(() => browser.stop());

  const authorizeButton = () => page.locator('.scheme-container .authorize');
  const dialog = () => page.locator('.modal-ux');
  const requestBody = () => page.locator('textarea');
  const resetButton = () => page.getByRole('button', { name: 'Reset' });
  const executeButton = () => page.getByRole('button', { name: 'Execute' });

  const storage = () => page.evaluate('({ ...localStorage, ...sessionStorage })');

  async function open(): Promise<void> {
    await page.goto(new URL('/docs', application.url).href);
    await executeButton().waitFor();
  }

  async function authorize(): Promise<void> {
    await authorizeButton().click();
    await dialog().getByRole('textbox').fill(TOKEN);
    await dialog().getByRole('button', { name: 'Apply credentials' }).click();
    await page.keyboard.press('Escape');
    await dialog().waitFor({ state: 'detached' });
  }

  /** The status and the body that the page shows when the request is answered. */
  async function shownAnswer(): Promise<{ status: string; body: unknown }> {
    const answer = page.locator('.live-responses-table .response');
    const status = await answer.locator('.response-col_status').innerText();
    const body = await answer.locator('.microlight').first().innerText();
    return { status: status.trim(), body: JSON.parse(body) };
  }

  async function expectAnswer(code: number, body: object): Promise<void> {
    const status = expect.stringMatching(`^${code}\\b`) as string;
    expect(await shownAnswer()).toEqual({ status, body });
  }

  async function pressTabUntil(isFocused: Locator): Promise<void> {
    for (let presses = 0; presses < 50 && (await isFocused.count()) === 0; presses++) {
      await page.keyboard.press('Tab');
    }
    expect(await isFocused.count()).toBe(1);
  }

  function expectNoErrors(): void {
    const origins = requested
      .filter(({ protocol }) => protocol !== 'data:')
      .map((url) => url.origin);

    expect(pageErrors).toEqual([]);
    expect(new Set(origins)).toEqual(new Set([application.url.origin]));
  }

  it('explains how to get a token and what the error numbers mean', async () => {
    const information = page.locator('.information-container');
    await page.getByText('What the error numbers mean').click();

    const text = await information.innerText();

    expect(text).toContain('An access token that the operator of this service');
    expect(text).toMatch(/40003\s+400\s+A plant with this id exists already\./);
  });

  it('creates a plant from the prefilled example, without errors and requests to other origins', async () => {
    await authorize();

    await executeButton().click();

    await expectAnswer(200, { name: 'Fern', tag: 'shade' });
    expect(application.store.plants()).toHaveLength(1);
    expectNoErrors();
  });

  it('creates a plant below the path that a proxy adds', async () => {
    const { port } = application.url;
    const proxy = createServer((incoming, outgoing) => {
      const { url = '', method, headers } = incoming;
      // A path that does not begin so is 404, as behind a proxy.
      const path = url.startsWith('/store/') ? url.slice('/store'.length) : '/nothing';
      const forwarded = request({ port, path, method, headers }, (answer) => {
        answer.pipe(outgoing.writeHead(answer.statusCode ?? 502, answer.headers));
      });
      incoming.pipe(forwarded);
    }).listen(0, '127.0.0.1');
    await once(proxy, 'listening');
    await page.goto(`http://127.0.0.1:${(proxy.address() as AddressInfo).port}/store/`);
    await authorize();

    await executeButton().click();

    await expectAnswer(200, { name: 'Fern', tag: 'shade' });
    expect(await page.locator('.curl').innerText()).toContain('/store/plants');
    proxy.closeAllConnections();
    proxy.close();
  });

  it('shows and sends the example with an id that no double holds, to the last digit', async () => {
    await authorize();
    const examples = page.locator('.opblock-section-request-body .examples-select select');
    await examples.selectOption('largeId');
    const [, id = ''] = /"id": (\d+)/.exec(await requestBody().inputValue()) ?? [];

    await executeButton().click();

    expect((await shownAnswer()).status).toBe('200');
    expect(id).toBe('9007199254740993');
    expect(String(Number(id))).not.toBe(id);
    expect(await page.locator('.curl').innerText()).toContain(id);
    expect(application.store.plants()).toMatchObject([{ id: BigInt(id) }]);
  });

  it('has a field for the Idempotency-Key, empty at first', async () => {
    await authorize();
    await executeButton().click();
    expect((await shownAnswer()).status).toBe('200');
    application.store.removePlants();
    await page.locator('tr[data-param-name="Idempotency-Key"] input').fill('"abc"');

    for (const isReplay of [false, true]) {
      const answered = page.waitForResponse(/plants/);
      await executeButton().click();
      const answer = await answered;
      expect([answer.status(), 'idempotent-replayed' in answer.headers()]).toEqual([200, isReplay]);
    }
  });

  it('forgets the token with the page', async () => {
    await authorize();
    const stored = await storage();
    await open();

    await executeButton().click();

    expect((await shownAnswer()).status).toMatch(/^401/);
    expect([stored, await storage(), await context.cookies()]).toEqual([{}, {}, []]);
  });

  it('is usable by keyboard alone', async () => {
    await pressTabUntil(page.locator('.scheme-container .authorize:focus'));
    await page.keyboard.press('Enter');
    await pressTabUntil(page.locator('.modal-ux input:focus'));
    await page.keyboard.type(TOKEN);
    await page.keyboard.press('Enter');
    await page.keyboard.press('Escape');
    await pressTabUntil(page.locator('textarea:focus'));
    await page.keyboard.press('Control+A');
    await page.keyboard.type('{"id": 1, "name": "Fern"}');
    await pressTabUntil(page.locator('.execute:focus'));
    await page.keyboard.press('Enter');

    expect((await shownAnswer()).status).toBe('200');
  });

  describe.each([
    ['a desktop', DESKTOP],
    ['a phone', PHONE],
  ])('on %s', (_device, viewport) => {
    /** A body whose lines are too long for every screen. */
    const LONG_BODY = JSON.stringify({ id: 1, name: 'Fern', tag: 'x'.repeat(500) });

    beforeEach(() => page.setViewportSize(viewport));

    it('fits the width in every state, with each button and field in its box', async () => {
      const steps = [
        () =>
          requestBody()
            .fill(LONG_BODY)
            .then(() => resetButton().waitFor()),
        () => executeButton().click().then(shownAnswer),
        () => page.getByText('What the error numbers mean').click(),
        () => authorizeButton().click(),
      ];
      for (const step of steps) {
        expect(await page.evaluate(OUTSIDE)).toEqual([]);
        await step();
      }
      expect(await page.evaluate(OUTSIDE)).toEqual([]);
    });
  });

  describe.each(['light', 'dark'] as const)('in a browser that prefers %s', (colorScheme) => {
    beforeEach(() => page.emulateMedia({ colorScheme }));

    const isGround = async (scheme: 'light' | 'dark'): Promise<boolean> =>
      page.evaluate(`${GROUND} ${scheme === 'light' ? '>= 200' : '<= 60'}`);

    it('has a ground of that kind from the start, and changes with the preference', async () => {
      await open();
      expect(await isGround(colorScheme)).toBe(true);

      const other = colorScheme === 'light' ? 'dark' : 'light';
      await page.emulateMedia({ colorScheme: other });

      await expect(until(() => isGround(other))).resolves.toBeUndefined();
    });
  });
});

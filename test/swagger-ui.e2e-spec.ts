import { type BrowserContext, type Locator, type Page } from 'playwright-core';
import { TestApplication, TOKEN } from './support/application';
import { TestBrowser } from './support/browser';
import { errorBodies } from './support/error-bodies';

jest.setTimeout(60_000);

const DESKTOP = { width: 1280, height: 900 };
const PHONE = { width: 375, height: 740 };

describe('Swagger UI in Chromium', () => {
  let application: TestApplication;
  let url: URL;
  let browser: TestBrowser;
  let context: BrowserContext;
  let page: Page;
  /** What the page wrote to the console or threw. */
  let pageErrors: string[];
  let requested: URL[];
  beforeAll(async () => {
    application = await TestApplication.start();
    url = await application.listen();
    browser = await TestBrowser.start();
  });
  beforeEach(async () => {
    application.store.removePlants();
    context = await browser.newContext({ viewport: DESKTOP });
    page = await context.newPage();
    pageErrors = [];
    requested = [];
    page.on('console', (message) => pageErrors.push(message.text()));
    page.on('pageerror', (error) => pageErrors.push(error.message));
    page.on('request', (request) => requested.push(new URL(request.url())));
    await open();
  });
  afterEach(() => context.close());
  afterAll(async () => {
    await browser.stop();
    await application.stop();
  });

  const authorizeButton = () => page.locator('.scheme-container .authorize');
  const dialog = () => page.locator('.modal-ux');
  const requestBody = () => page.locator('textarea');
  const executeButton = () => page.getByRole('button', { name: 'Execute' });

  async function open(): Promise<void> {
    await page.goto(new URL('/docs', url).href);
    await executeButton().waitFor();
  }

  async function authorize(): Promise<void> {
    await authorizeButton().click();
    await dialog().locator('input').fill(TOKEN);
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

  async function pressTabUntil(isFocused: Locator): Promise<void> {
    for (let presses = 0; presses < 50 && (await isFocused.count()) === 0; presses++) {
      await page.keyboard.press('Tab');
    }
    expect(await isFocused.count()).toBe(1);
  }

  function expectNoErrors(): void {
    const elsewhere = requested.filter(
      ({ origin, protocol }) => origin !== url.origin && protocol !== 'data:',
    );

    expect(pageErrors).toEqual([]);
    expect(elsewhere).toEqual([]);
  }

  it('opens without errors and without requests to other origins', async () => {
    expect(await page.title()).toBe('Plant Store');
    expectNoErrors();
  });

  it('explains how to get a token and what the error numbers mean', async () => {
    const information = page.locator('.information-container');
    await page.getByText('What the error numbers mean').click();

    const text = await information.innerText();

    expect(text).toContain('An access token of this service');
    expect(text).toMatch(/40003\s+400\s+A plant with this id exists already\./);
  });

  it('creates a plant from the prefilled example', async () => {
    await authorize();

    await executeButton().click();

    expect(await shownAnswer()).toEqual({ status: '200', body: { name: 'Fern', tag: 'shade' } });
    expect(application.store.plants()).toHaveLength(1);
    expectNoErrors();
  });

  it('sends an id above 2^53 exactly as typed', async () => {
    await authorize();
    await requestBody().fill('{"id": 9007199254740993, "name": "Fern"}');

    await executeButton().click();

    expect(await shownAnswer()).toEqual({ status: '200', body: { name: 'Fern' } });
    expect(application.store.plants()).toEqual([{ id: 9_007_199_254_740_993n, name: 'Fern' }]);
  });

  it('sends the example with an id above 2^53 exactly as shown', async () => {
    await authorize();
    await page
      .locator('.opblock-section-request-body .examples-select select')
      .selectOption('largeId');
    const [, id = ''] = /"id": (\d+)/.exec(await requestBody().inputValue()) ?? [];

    await executeButton().click();

    expect((await shownAnswer()).status).toBe('200');
    expect(application.store.plants()).toMatchObject([{ id: BigInt(id) }]);
    expect(BigInt(id)).toBeGreaterThan(2n ** 53n);
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

  it('shows the Error body when the request body is wrong', async () => {
    await authorize();
    await requestBody().fill('{"id": 1}');

    await executeButton().click();

    expect(await shownAnswer()).toEqual({
      status: expect.stringMatching(/^400\b/) as string,
      body: errorBodies.nameMissing,
    });
  });

  it('shows a 401 and its Error body without a token', async () => {
    await executeButton().click();

    expect(await shownAnswer()).toEqual({
      status: expect.stringMatching(/^401\b/) as string,
      body: errorBodies.missingCredentials,
    });
    expect(application.store.plants()).toEqual([]);
  });

  it('keeps the token after a reload', async () => {
    await authorize();
    await open();

    await executeButton().click();

    expect((await shownAnswer()).status).toBe('200');
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

  it("fits a phone's width, and gives most of it to the answer", async () => {
    await page.setViewportSize(PHONE);

    await executeButton().click();
    await shownAnswer();

    const box = await page.locator('.live-responses-table .microlight').first().boundingBox();
    expect(box?.width).toBeGreaterThan(0.8 * PHONE.width);
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(PHONE.width);
  });
});

import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type Browser, chromium, type Page } from 'playwright-core';
import { makeFolder, removeFolder } from './folder';

/** Unpacks the Chromium of the package and prints its path. */
const UNPACK_SCRIPT = "require('@sparticuz/chromium').default.executablePath().then(console.log)";

/** A real headless Chromium, unpacked from its npm package into a temporary folder. */
export class TestBrowser {
  private readonly folder = makeFolder();
  private browser?: Browser;

  /** Starts a browser that runs while the tests of the calling file or `describe` run. */
  static use(): TestBrowser {
    const browser = new TestBrowser();
    beforeAll(() => browser.start());
    afterAll(() => browser.stop());
    return browser;
  }

  /** Opens a page in a new browser context. */
  async newPage(): Promise<Page> {
    if (!this.browser) throw new Error('not started');
    const page = await this.browser.newPage();
    // No timeout of Playwright: Jest's timeout of the test ends a hang.
    page.setDefaultTimeout(0);
    return page;
  }

  private async start(): Promise<void> {
    const { folder } = this;
    const { stdout } = await promisify(execFile)(process.execPath, ['-e', UNPACK_SCRIPT], {
      cwd: __dirname,
      // The package unpacks into the temporary folder. It unpacks the libraries that a minimal system
      // lacks only if it finds itself on AWS Lambda.
      env: { ...process.env, TMPDIR: folder, AWS_LAMBDA_JS_RUNTIME: 'nodejs24.x' },
    });
    const fonts = join(folder, 'fonts.conf');
    writeFileSync(fonts, `<fontconfig><dir>${folder}/fonts</dir></fontconfig>`);
    const libraries = { FONTCONFIG_FILE: fonts, LD_LIBRARY_PATH: join(folder, 'al2023/lib') };
    this.browser = await chromium.launch({
      executablePath: stdout.trim(),
      // Chromium's sandbox does not work for root or in a container.
      chromiumSandbox: false,
      env: { ...process.env, HOME: folder, ...libraries },
      timeout: 0,
    });
  }

  private async stop(): Promise<void> {
    await this.browser?.close();
    removeFolder(this.folder);
  }
}

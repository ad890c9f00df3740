import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type Browser, chromium, type Page } from 'playwright-core';
import { makeFolder, removeFolder } from './folder';

/** Unpacks the Chromium that the package carries, and prints where it is. */
const UNPACK = "require('@sparticuz/chromium').default.executablePath().then(console.log)";

/** A real Chromium, headless, unpacked from its npm package into a folder of its own. */
export class TestBrowser {
  private readonly folder = makeFolder();
  private browser?: Browser;

  /** A browser that runs while the tests of the calling file or `describe` do. */
  static use(): TestBrowser {
    const browser = new TestBrowser();
    beforeAll(() => browser.start());
    afterAll(() => browser.stop());
    return browser;
  }

  /** A page in a context of its own. */
  async newPage(): Promise<Page> {
    if (!this.browser) throw new Error('not started');
    const page = await this.browser.newPage();
    // That of the test is long enough.
    page.setDefaultTimeout(0);
    return page;
  }

  private async start(): Promise<void> {
    const { folder } = this;
    const { stdout } = await promisify(execFile)(process.execPath, ['-e', UNPACK], {
      cwd: __dirname,
      // The package unpacks into the temporary folder, and the libraries that a bare system lacks
      // only for AWS Lambda.
      env: { ...process.env, TMPDIR: folder, AWS_LAMBDA_JS_RUNTIME: 'nodejs24.x' },
    });
    const fonts = join(folder, 'fonts.conf');
    writeFileSync(fonts, `<fontconfig><dir>${folder}/fonts</dir></fontconfig>`);
    const libraries = { FONTCONFIG_FILE: fonts, LD_LIBRARY_PATH: join(folder, 'al2023/lib') };
    this.browser = await chromium.launch({
      executablePath: stdout.trim(),
      // Chromium's own sandbox needs what neither root nor a container has.
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

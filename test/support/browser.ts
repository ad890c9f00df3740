import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
} from 'playwright-core';
import { makeFolder, removeFolder } from './folder';

/** Unpacks the Chromium that the package carries, and prints where it is. */
const UNPACK = "require('@sparticuz/chromium').default.executablePath().then(console.log)";

/** A real Chromium, headless, unpacked from its npm package into a folder of its own. */
export class TestBrowser {
  private constructor(
    private readonly browser: Browser,
    private readonly folder: string,
  ) {}

  static async start(): Promise<TestBrowser> {
    const folder = makeFolder();
    const { stdout } = await promisify(execFile)(process.execPath, ['-e', UNPACK], {
      cwd: __dirname,
      // The package unpacks into the temporary folder, and the libraries that a bare system lacks
      // only for AWS Lambda.
      env: { ...process.env, TMPDIR: folder, AWS_LAMBDA_JS_RUNTIME: 'nodejs24.x' },
    });
    const fonts = join(folder, 'fonts.conf');
    writeFileSync(fonts, `<fontconfig><dir>${folder}/fonts</dir></fontconfig>`);
    const browser = await chromium.launch({
      executablePath: stdout.trim(),
      // Chromium's own sandbox needs what neither root nor a container has.
      chromiumSandbox: false,
      // V8's last compiler: pages live for a second, too short to gain from it.
      args: ['--js-flags=--no-turbofan'],
      env: {
        ...process.env,
        HOME: folder,
        FONTCONFIG_FILE: fonts,
        LD_LIBRARY_PATH: join(folder, 'al2023/lib'),
      },
    });
    return new TestBrowser(browser, folder);
  }

  newContext(options: BrowserContextOptions): Promise<BrowserContext> {
    return this.browser.newContext(options);
  }

  async stop(): Promise<void> {
    await this.browser.close();
    removeFolder(this.folder);
  }
}

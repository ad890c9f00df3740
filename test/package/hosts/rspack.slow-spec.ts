import { execFileSync } from 'node:child_process';
import { copyFileSync, cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolder, removeFolder } from '../../support/folder';
import { answerCases, Host, installHost, packPackage } from './hosts';

const PROGRAM = `import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { PlantsModule } from 'plant-store';

@Module({
  imports: [
    PlantsModule.forRoot({ sqlite: process.env.DATABASE, auth: { tokens: ['host-token'] } }),
  ],
})
class AppModule {}

async function start(): Promise<void> {
  const app = await NestFactory.create(AppModule, { logger: ['error', 'warn'] });
  app.setGlobalPrefix('api/v1');
  await app.listen(0, '127.0.0.1');
  process.stdout.write(\`Listening on \${await app.getUrl()}\\n\`);
}
void start();
`;

const CONFIGURATION = {
  compilerOptions: {
    module: 'nodenext',
    target: 'es2022',
    strict: true,
    ...{ experimentalDecorators: true, emitDecoratorMetadata: true, skipLibCheck: true },
    types: ['node'],
    ...{ rootDir: 'src', outDir: 'dist' },
  },
  include: ['src'],
};

/** All in one file, but for what is not installed, and for what Nest 11 loads as an ES module. */
const ONE_FILE = `module.exports = (options) => ({
  ...options,
  externals: ['pg', 'file-type', /^@nestjs\\/(?:microservices|websockets)/],
});
`;

const WORKER = 'node_modules/plant-store/dist/plants/persistence/sqlite/sqlite.worker.js';

let folder: string;
let tarball: string;
let host: Host | undefined;
beforeAll(() => {
  folder = makeFolder();
  tarball = packPackage(folder);
});
afterEach(async () => {
  await host?.stop();
  host = undefined;
});
afterAll(() => {
  removeFolder(folder);
});

describe.each([11, 12] as const)('a host on Nest %d, bundled with Rspack', (nest) => {
  let home: string;
  beforeAll(() => {
    ({ home } = installHost(folder, `rspack${nest}`, tarball));
    mkdirSync(join(home, 'src'));
    writeFileSync(join(home, 'src/main.ts'), PROGRAM);
    writeFileSync(join(home, 'tsconfig.json'), JSON.stringify(CONFIGURATION));
    writeFileSync(join(home, 'nest-cli.json'), JSON.stringify({ sourceRoot: 'src' }));
  }, 240_000);

  function build(): void {
    const cli = join(home, 'node_modules/@nestjs/cli/bin/nest.js');
    execFileSync(process.execPath, [cli, 'build', '--builder', 'rspack'], {
      cwd: home,
      stdio: 'pipe',
    });
  }

  async function expectContract(folderOfHost: string): Promise<void> {
    host = await Host.startProgram(folderOfHost, 'dist/main.js');

    const { actual, expected } = await answerCases(host);

    expect(actual).toEqual(expected);
    expect(host.output).toBe('');
  }

  it('answers as the contract says, with packages outside the bundle', async () => {
    build();

    await expectContract(home);
  }, 120_000);

  it('answers as the contract says, as one file beside node_modules', async () => {
    writeFileSync(join(home, 'rspack.config.js'), ONE_FILE);
    build();

    await expectContract(home);
  }, 120_000);

  it('answers as the contract says, as one file alone, with the file it asks for beside it', async () => {
    const lonely = join(folder, `lonely${nest}`);
    writeFileSync(join(home, 'rspack.config.js'), ONE_FILE);
    build();
    cpSync(join(home, 'dist'), join(lonely, 'dist'), { recursive: true });

    await expect(Host.startProgram(lonely, 'dist/main.js')).rejects.toThrow(
      `copy ${WORKER} to ${join(lonely, 'dist')}`,
    );
    copyFileSync(join(home, WORKER), join(lonely, 'dist/sqlite.worker.cjs'));

    await expectContract(lonely);
  }, 120_000);
});

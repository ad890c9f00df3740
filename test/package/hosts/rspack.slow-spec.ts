import { copyFileSync, cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { configure, run, usePackage } from '../packed';
import { expectContract, Host, installHost } from './hosts';

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

/** All in one file, but for what is not installed, and for what Nest 11 loads as an ES module. */
const ONE_FILE = `module.exports = (options) => ({
  ...options,
  externals: ['pg', 'file-type', /^@nestjs\\/(?:microservices|websockets)/],
});
`;

const WORKER = 'node_modules/plant-store/dist/plants/persistence/sqlite/sqlite.worker.js';

const packed = usePackage();

describe.each([11, 12] as const)('a host on Nest %d, bundled with Rspack', (nest) => {
  let home: string;
  let host: Host | undefined;
  beforeAll(() => {
    ({ home } = installHost(`rspack${nest}`, packed));
    mkdirSync(join(home, 'src'));
    writeFileSync(join(home, 'src/main.ts'), PROGRAM);
    configure(home, { skipLibCheck: true, rootDir: 'src', outDir: 'dist' });
    writeFileSync(join(home, 'nest-cli.json'), JSON.stringify({ sourceRoot: 'src' }));
  });
  afterEach(() => host?.end());

  function build(): void {
    const cli = join(home, 'node_modules/@nestjs/cli/bin/nest.js');
    run(home, process.execPath, cli, 'build', '--builder', 'rspack');
  }

  async function expectToServe(folder: string): Promise<void> {
    host = await Host.startProgram(folder, 'dist/main.js');

    await expectContract(host);
    expect(host.stderr).toBe('');
  }

  it('answers as the contract says, with packages outside the bundle', async () => {
    build();

    await expectToServe(home);
  });

  it('answers as the contract says, as one file beside node_modules', async () => {
    writeFileSync(join(home, 'rspack.config.js'), ONE_FILE);
    build();

    await expectToServe(home);
  });

  it('answers as the contract says, as one file alone, with the file it asks for beside it', async () => {
    const lonely = join(packed.folder, `lonely${nest}`);
    writeFileSync(join(home, 'rspack.config.js'), ONE_FILE);
    build();
    cpSync(join(home, 'dist'), join(lonely, 'dist'), { recursive: true });

    await expect(Host.startProgram(lonely, 'dist/main.js')).rejects.toThrow(
      `copy ${WORKER} to ${join(lonely, 'dist')}`,
    );
    copyFileSync(join(home, WORKER), join(lonely, 'dist/sqlite.worker.cjs'));

    await expectToServe(lonely);
  });
});

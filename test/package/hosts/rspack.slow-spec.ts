import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { configure, run, usePackages } from '../packed';
import { expectContract, Host, installHost } from './hosts';

const PROGRAM = `import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { PlantsModule } from '@plant-store/nestjs';

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

const packed = usePackages();

describe.each([11, 12] as const)('a host on Nest %d, built by Nest with Rspack', (nest) => {
  it('answers as the contract says', async () => {
    const { home } = installHost(`rspack${nest}`, packed);
    mkdirSync(join(home, 'src'));
    writeFileSync(join(home, 'src/main.ts'), PROGRAM);
    configure(home, { skipLibCheck: true, rootDir: 'src', outDir: 'dist' });
    writeFileSync(join(home, 'nest-cli.json'), JSON.stringify({ sourceRoot: 'src' }));
    const cli = join(home, 'node_modules/@nestjs/cli/bin/nest.js');
    run(home, process.execPath, cli, 'build', '--builder', 'rspack');

    const host = await Host.startProgram(home, 'dist/main.js');

    await expectContract(host);
    expect(host.stderr).toBe('');
    await host.end();
  });
});

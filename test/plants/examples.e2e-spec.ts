/** Runs the examples of docs/embedding.md that need packages or hosts of their own, on both platforms. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  Controller,
  type INestApplication,
  Module,
  Post,
  BadRequestException,
} from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import { TerminusModule } from '@nestjs/terminus';
import { register } from '@prometheus-io/client';
import { PlantsModule, PlantsRepository } from '../../src/plants';
import { errorBodies } from '../support/error-bodies';
import { useFolder } from '../support/folder';
import { startHost } from '../support/orchard';
import { HealthController } from './examples/health.controller';
import { MalformedJsonFilter } from './examples/malformed-json.filter';
import { PlantsMetrics } from './examples/plants.metrics';

const folder = useFolder();
const EXAMPLES = join(__dirname, 'examples');
const page = readFileSync(join(__dirname, '../../docs/embedding.md'), 'utf8');

it.each(globSync('*.ts', { cwd: EXAMPLES }))(
  'docs/embedding.md shows %s as it is tested',
  (file) => {
    const code = readFileSync(join(EXAMPLES, file), 'utf8');

    expect(page).toContain(code.replace('../../../src/plants', '@plant-store/nestjs'));
  },
);

@Controller('orchards/plants-of-the-host')
class OtherController {
  @Post()
  create(): never {
    throw new BadRequestException('of the host');
  }
}

describe.each(['Fastify', 'Express'] as const)('a host on %s', (adapter) => {
  let app: INestApplication;
  let url: URL;
  beforeEach(async () => {
    const plants = PlantsModule.forRoot({
      sqlite: join(folder, 'plants.db'),
      auth: { tokens: ['token-of-the-host'] },
    });
    @Module({
      imports: [plants, TerminusModule],
      controllers: [HealthController, OtherController],
      providers: [PlantsMetrics, { provide: APP_FILTER, useClass: MalformedJsonFilter }],
    })
    class ExamplesModule {}
    ({ app, url } = await startHost(adapter, [ExamplesModule], { rawBody: true }));
  });
  afterEach(async () => {
    await app.close();
    register.clear();
  });

  async function post(path: string, body: string) {
    const headers = {
      'content-type': 'application/json',
      authorization: 'Bearer token-of-the-host',
    };
    const response = await fetch(new URL(path, url), { method: 'POST', headers, body });
    return { status: response.status, body: await response.json() };
  }

  it('gives malformed JSON the Error body, and no other error', async () => {
    for (const path of ['/api/v1/plants', '/api/v1/plants?a=b']) {
      for (const body of ['{', '', '{"id":1,}']) {
        const response = await post(path, body);

        expect(response).toMatchObject({ status: 400, body: { error: errorBodies.notJson.error } });
      }
    }
    expect(await post('/api/v1/plants', '{"name":"Fern"}')).toMatchObject({
      status: 400,
      body: errorBodies.idMissing,
    });
    expect(await post('/api/v1/trees', '{')).toMatchObject({ body: { statusCode: 400 } });
    expect(await post('/api/v1/orchards/plants-of-the-host', '{}')).toMatchObject({
      status: 400,
      body: { message: 'of the host' },
    });
    expect(await post('/api/v1/nowhere', '{}')).toMatchObject({ status: 404 });
  });

  it('reports with terminus whether plants can be created', async () => {
    const health = new URL('/api/v1/health', url);
    const ready = await fetch(health);
    jest.spyOn(app.get(PlantsRepository), 'isReady').mockReturnValue(false);
    const notReady = await fetch(health);

    expect([ready.status, await ready.json()]).toMatchObject([
      200,
      { details: { plants: { status: 'up' } } },
    ]);
    expect([notReady.status, await notReady.json()]).toMatchObject([
      503,
      { details: { plants: { status: 'down' } } },
    ]);
  });

  it('counts batches in its own metrics', async () => {
    await post('/api/v1/plants', '{"id":1,"name":"Fern"}');

    const metrics = await register.metrics();

    expect(metrics).toContain('plants_batch_size_sum 1\n');
    expect(metrics).toContain('plants_commit_seconds_count 1\n');
  });
});

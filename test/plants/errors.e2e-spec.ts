import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Test } from '@nestjs/testing';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { AppModule } from '../../src/app.module';
import { readEnvironment } from '../../src/server/environment';
import { createFastifyAdapter } from '../../src/server/fastify-adapter';
import { errorCatalogue, PlantsRepository } from '../../src/plants';
import { answerOf, TOKEN } from '../support/application';
import { expectAsDeclared } from '../support/contract';
import { errorBodies } from '../support/error-bodies';

describe('the error catalogue', () => {
  const lines = Object.values(errorCatalogue);

  it('has no number twice, and each begins with its status', () => {
    expect(new Set(lines.map(({ error }) => error)).size).toBe(lines.length);
    for (const { error, status } of lines) expect(Math.floor(error / 100)).toBe(status);
  });

  const rowsOf = (page: string): string[][] => {
    const text = readFileSync(join(__dirname, '../..', page), 'utf8');
    const rows = text.matchAll(/^\| `(\d{5})` \| (.*?) +\|$/gm);
    return Array.from(rows, ([, ...columns]) => columns);
  };
  const expected = lines.map(({ error, meaning }) => [String(error), meaning]);

  it('is the same as the table of its page', () => {
    expect(rowsOf('docs/errors.md')).toEqual(expected);
  });

  it('has the ten rows that the README shows', () => {
    const rows = rowsOf('README.md');

    expect(rows).toHaveLength(10);
    expect(expected).toEqual(expect.arrayContaining(rows));
  });
});

describe('a store that throws an unexpected error', () => {
  it('is answered 500, and the log has the cause', async () => {
    const failure = new Error('a secret of the inside');
    const settings = readEnvironment({ AUTH_TOKENS: TOKEN });
    const module = await Test.createTestingModule({ imports: [AppModule.register(settings)] })
      .overrideProvider(PlantsRepository)
      .useValue({ insert: () => Promise.reject(failure) })
      .compile();
    const error = jest.fn();
    const app = module.createNestApplication<NestFastifyApplication>(
      createFastifyAdapter(settings),
      { bodyParser: false, logger: { error, log: jest.fn(), warn: jest.fn() } },
    );
    await app.init();

    const response = await app.inject({
      method: 'POST',
      url: '/plants',
      headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
      payload: '{"id":1,"name":"Fern"}',
    });
    await app.close();

    expectAsDeclared(answerOf(response));
    expect(response.json()).toEqual(errorBodies.internal);
    expect(error.mock.calls).toEqual([[failure, expect.stringContaining('50000'), 'Errors']]);
  });
});

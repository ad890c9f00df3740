import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import type { LightMyRequestResponse } from 'fastify';
import { createApplication } from '../../src/app.module';
import { readEnvironment } from '../../src/server/settings/environment';
import { type TestResponse, createPlantOperation, expectDeclaredResponse } from './contract';
import { SqliteStore, type TestStore } from './stores';

/** The token that the application under test accepts. */
export const TOKEN = 'a-good-token-of-the-tests';

/** The headers of a request with {@link TOKEN}. */
export const AUTHORIZED = { authorization: `Bearer ${TOKEN}` };
/** The headers of a create request. */
export const JSON_HEADERS = { ...AUTHORIZED, 'content-type': 'application/json' };

/** Headers that {@link TestApplication.post} adds to {@link JSON_HEADERS}. Undefined removes a header. */
export type Headers = Record<string, string | string[] | undefined>;

/** The real application with its own real database. */
export class TestApplication<Store extends TestStore = SqliteStore> {
  app!: NestFastifyApplication;
  /** The address. Set by {@link listen}. */
  url!: URL;

  private constructor(readonly store: Store) {}

  /**
   * Creates the application. It does not listen yet.
   *
   * @param environment environment variables that are added to the defaults of the tests
   * @param store a new SQLite file by default
   */
  static async start<Store extends TestStore = SqliteStore>(
    environment: NodeJS.ProcessEnv = {},
    store?: Store,
  ): Promise<TestApplication<Store>> {
    const application = new TestApplication((store ?? new SqliteStore()) as Store);
    await application.init(environment);
    return application;
  }

  /** Starts an application that listens while the tests of the calling file or `describe` run. */
  static use(environment: NodeJS.ProcessEnv = {}): TestApplication {
    const application = new TestApplication(new SqliteStore());
    beforeAll(async () => {
      await application.init(environment);
      await application.listen();
    });
    afterAll(() => application.stop());
    return application;
  }

  /** Listens on a free port, for tests that use a socket. */
  async listen(): Promise<URL> {
    await this.app.listen(0, '127.0.0.1');
    this.url = new URL(await this.app.getUrl());
    return this.url;
  }

  /**
   * Sends a body to `POST /plants`, by default with {@link JSON_HEADERS}, and checks the response
   * against its operation.
   */
  async post(
    body: string | Buffer | undefined,
    headers: Headers = {},
  ): Promise<LightMyRequestResponse> {
    const entries = Object.entries<Headers[string]>({ ...JSON_HEADERS, ...headers });
    const response = await this.app.inject({
      method: 'POST',
      url: '/plants',
      headers: Object.fromEntries(entries.filter(([, value]) => value !== undefined)),
      ...(body !== undefined && { payload: body }),
    });
    expectDeclaredResponse(createPlantOperation, toTestResponse(response));
    return response;
  }

  async stop(): Promise<void> {
    await (this.app as NestFastifyApplication | undefined)?.close();
    await this.store.remove();
  }

  private async init(environment: NodeJS.ProcessEnv): Promise<void> {
    const defaults = { AUTH_TOKENS: TOKEN, DATABASE_URL: this.store.url, LOG_LEVEL: 'silent' };
    this.app = await createApplication(readEnvironment({ ...defaults, PORT: '0', ...environment }));
    await this.app.init();
    await this.app.getHttpAdapter().getInstance().ready();
  }
}

/** Converts a response of Fastify's `inject`. */
export function toTestResponse(response: LightMyRequestResponse): TestResponse {
  return { status: response.statusCode, headers: response.headers, body: response.json() };
}

import { once } from 'node:events';
import { TestApplication, TOKEN } from '../support/application';
import { openConnection } from '../support/wire';

// prettier-ignore
const routes = [
  'POST /plants', 'PUT /plants', 'OPTIONS /plants', 'GET /metrics', 'GET /health/ready',
  'GET /', 'GET /docs', 'GET /docs/swagger-ui.css', 'GET /openapi.json', 'POST /nothing',
];

/** Every header that the service, Nest, Fastify, the file server or Node.js reads. */
// prettier-ignore
const fields = [
  'Connection', 'Expect', 'Transfer-Encoding', 'Upgrade', 'Host', 'Keep-Alive', 'TE',
  'Content-Type', 'Content-Encoding', 'Content-Length', 'Authorization', 'Idempotency-Key',
  'X-Request-Id', 'traceparent', 'Origin', 'Access-Control-Request-Method', 'X-Forwarded-For',
  'Accept', 'Accept-Encoding', 'Range', 'If-None-Match', 'If-Match', 'If-Range', 'Cookie',
  'If-Modified-Since', 'If-Unmodified-Since', 'Cache-Control', 'Accept-Version',
];

const pieces = [' ', ' ,', '"', '\\"', '"a",', ';', '; a=b', '=', '%41', ':', 'a:'];

/** The beginning of each value, without which the header would not be parsed. */
const beginnings: Partial<Record<string, string>> = {
  Authorization: `Bearer ${TOKEN}`,
  'Content-Type': 'application/json',
  Range: 'bytes=0-1',
  'X-Forwarded-For': '192.0.2.1',
};

/** The size of the header's value. */
const VALUE_BYTES = 15_000;

/** How much longer a header may take than a plain one of the same size. A quadratic one takes 100 times as long. */
const MAX_TIME_FACTOR = 50;

describe('a 15 KB header', () => {
  const application = TestApplication.use({
    ACCESS_LOG: 'true',
    CORS_ORIGINS: 'https://app.example.org',
    RATE_LIMIT: '1000000/s',
    TRUSTED_PROXIES: '127.0.0.0/8 192.0.2.0/24',
  });

  /** Measures the CPU time in microseconds from a request with a header to the first byte of the response. */
  async function measureTime(route: string, field: string): Promise<number> {
    const socket = openConnection(application.url);
    await once(socket, 'connect');
    const body = '{"id":1,"name":"Fern"}';
    const isAuthorization = field.startsWith('Authorization');
    const authorization = isAuthorization ? '' : `Authorization: Bearer ${TOKEN}\r\n`;
    const start = process.threadCpuUsage();
    socket.write(
      `${route} HTTP/1.1\r\nHost: x\r\n${authorization}${field}\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    await once(socket, 'data');
    const { user, system } = process.threadCpuUsage(start);
    socket.destroy();
    return user + system;
  }

  it.each(routes)('takes %s a similar time to process, whatever its content', async (route) => {
    const slow: string[] = [];
    for (const name of fields) {
      const beginning = `${name}: ${beginnings[name] ?? 'a'}`;
      const plainField = beginning.padEnd(VALUE_BYTES, 'x');
      let plain = await measureTime(route, plainField);
      for (const piece of pieces) {
        const field = beginning + piece.repeat(VALUE_BYTES / piece.length) + 'b';
        // The garbage collector may run, so only a header that is slow every time counts.
        let time = await measureTime(route, field);
        for (let round = 0; round < 20 && time > plain * MAX_TIME_FACTOR; round++) {
          time = Math.min(time, await measureTime(route, field));
          plain = Math.max(plain, await measureTime(route, plainField));
        }
        if (time > plain * MAX_TIME_FACTOR)
          slow.push(`${name} filled with ${JSON.stringify(piece)}`);
      }
    }

    expect(slow).toEqual([]);
  });
});

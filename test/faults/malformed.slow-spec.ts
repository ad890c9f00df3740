import { randomInt } from 'node:crypto';
import { connect } from 'node:net';
import fc from 'fast-check';
import { errorCatalogue } from '../../src/plants/errors/errors';
import { TOKEN } from '../support/application';
import { putLoad } from '../support/load';
import { residentMemory } from '../support/metrics';
import { useServiceHome } from '../support/service-process';

const SOCKET_LEVEL = 30_000;
const JSON_LEVEL = 70_000;
const WARM_UP = 25_000;
const CONNECTIONS = 50;

/** A body that no few bytes more or less make a NewPlant. */
const BODY = '{"id":null,"nome":[1.5,{"tag":"\\ud800"},"Fern"],"tag":{"x":false}}';
const HEAD = `POST /plants HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKEN}\r\nContent-Type: application/json\r\n`;
const statuses = new Map<number, number>(
  Object.values(errorCatalogue).map(({ error, status }) => [error, status]),
);

const seed = Number(process.env.SEED ?? randomInt(2 ** 31));
const home = useServiceHome();

it(`100,000 malformed requests harm nothing (SEED=${seed})`, async () => {
  const service = await home.start({ HEADERS_TIMEOUT: '2s', REQUEST_TIMEOUT: '2s' });
  const url = await service.url();
  const mutate = mutator(seed);
  const errors = new Set<number>();
  const strange: string[] = [];

  function check(status: number, body: string): void {
    const { error = 0, message } = parse(body);
    errors.add(error);
    if (statuses.get(error) !== status || typeof message !== 'string') strange.push(body);
  }

  async function socketLevel(count: number): Promise<void> {
    const fields = `Content-Length: ${BODY.length}\r\nConnection: close`;
    let sent = 0;
    const one = async (): Promise<void> => {
      while (sent++ < count) {
        const answer = await exchangeOnce(url, mutate(`${HEAD}${fields}\r\n\r\n${BODY}`));
        const [head = '', rest = ''] = answer.split('\r\n\r\n');
        // Whatever follows the first answer is that to a further malformed request.
        const length = Number(/content-length: (\d+)/i.exec(head)?.[1]);
        if (head !== '') check(Number(head.slice(9, 12)), rest.slice(0, length));
      }
    };
    await Promise.all(Array.from({ length: CONNECTIONS }, one));
  }

  async function jsonLevel(count: number): Promise<void> {
    let id = 0;
    await putLoad({
      url,
      connections: CONNECTIONS,
      next: () => {
        const body = mutate(BODY);
        const text = `${HEAD}Content-Length: ${body.length}\r\n\r\n${body}`;
        return id++ < count ? { id, text } : undefined;
      },
      onAnswer: (_id, { status, body }) => {
        check(status, body);
      },
    });
  }

  await socketLevel(WARM_UP);
  await jsonLevel(WARM_UP);
  const before = await residentMemory(url);
  await socketLevel(SOCKET_LEVEL);
  await jsonLevel(JSON_LEVEL);

  expect((await residentMemory(url)) - before).toBeLessThan(50);
  expect(strange).toEqual([]);
  expect([50000, 50300, 50400].filter((error) => errors.has(error))).toEqual([]);
  expect(await service.statusOf('/health/ready')).toBe(200);
  expect(await service.end()).toEqual({ code: 0, signal: null });
  expect(home.plants()).toEqual([]);
});

/** Sends a text on a connection of its own, and ends it; gives back all that came. */
async function exchangeOnce(url: URL, request: string): Promise<string> {
  const socket = connect(Number(url.port), url.hostname).setEncoding('latin1');
  let received = '';
  socket.on('data', (part: string) => (received += part));
  socket.on('error', () => undefined);
  socket.end(request, 'latin1');
  await new Promise((resolve) => socket.once('close', resolve));
  return received;
}

function parse(body: string): { error?: number; message?: unknown } {
  try {
    return JSON.parse(body) as { error?: number };
  } catch {
    return {};
  }
}

/** Makes a function that cuts, repeats, swaps and replaces bytes of a text here and there. */
function mutator(seed: number): (text: string) => string {
  const edits = fc.sample(
    fc.record({
      kind: fc.integer({ min: 0, max: 4 }),
      at: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
      length: fc.integer({ min: 1, max: 12 }),
      byte: fc.integer({ min: 0, max: 255 }),
    }),
    { seed, numRuns: 100_003 },
  );
  let next = 0;
  return (text) => {
    for (let times = 1 + (next % 3); times > 0; times--) {
      const { kind = 0, at = 0, length = 0, byte = 0 } = edits[next++ % edits.length] ?? {};
      const from = Math.floor(at * text.length);
      const part = text.slice(from, from + length);
      const other = String.fromCharCode(byte);
      const reversed = Buffer.from(part, 'latin1').reverse().toString('latin1');
      const replacement = ['', part.repeat(3), other, other + part, reversed][kind] ?? '';
      text = text.slice(0, from) + replacement + text.slice(from + length);
    }
    return text;
  };
}

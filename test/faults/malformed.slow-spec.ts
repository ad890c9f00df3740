import { randomInt } from 'node:crypto';
import { connect } from 'node:net';
import fc from 'fast-check';
import { errorCatalogue } from '../../src/plants/errors/errors';
import { TOKEN } from '../support/application';
import { Load } from '../support/load';
import { residentMemory } from '../support/metrics';
import { useServiceHome } from '../support/service-process';

const SOCKET_LEVEL = 30_000;
const JSON_LEVEL = 70_000;
const WARM_UP = 25_000;
const CONNECTIONS = 50;

/** A body that no few bytes more or less make a NewPlant. */
const BODY = '{"id":null,"nome":[1.5,{"tag":"\\ud800"},"Fern"],"tag":{"x":false}}';
const HEAD = `POST /plants HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKEN}\r\nContent-Type: application/json\r\n`;
const WHOLE = `${HEAD}Content-Length: ${BODY.length}\r\nConnection: close\r\n\r\n${BODY}`;
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
    const [, error] = /^{"error":(\d{5}),"message":".*"}$/.exec(body) ?? [];
    errors.add(Number(error));
    if (statuses.get(Number(error)) !== status) strange.push(body);
  }

  async function socketLevel(count: number): Promise<void> {
    let sent = 0;
    const one = async (): Promise<void> => {
      while (sent++ < count) {
        const [head = '', rest = ''] = (await exchange(url, mutate(WHOLE))).split('\r\n\r\n');
        // Whatever follows the first answer is that to a further malformed request.
        const length = Number(/content-length: (\d+)/i.exec(head)?.[1]);
        if (head !== '') check(Number(head.slice(9, 12)), rest.slice(0, length));
      }
    };
    await Promise.all(Array.from({ length: CONNECTIONS }, one));
  }

  async function jsonLevel(count: number): Promise<void> {
    let id = 0;
    const next = () => {
      const body = mutate(BODY);
      const text = `${HEAD}Content-Length: ${body.length}\r\n\r\n${body}`;
      return id++ < count ? { id, name: '', text } : undefined;
    };
    await Load.put({
      urls: [url],
      connections: CONNECTIONS,
      next,
      onAnswer: (_creation, status, body) => {
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
async function exchange(url: URL, request: string): Promise<string> {
  const socket = connect(Number(url.port), url.hostname).setEncoding('latin1');
  let received = '';
  socket.on('data', (part: string) => (received += part));
  socket.on('error', () => undefined);
  socket.end(request, 'latin1');
  await new Promise((resolve) => socket.once('close', resolve));
  return received;
}

/** Makes a function that cuts, repeats, swaps and replaces bytes of a text here and there. */
function mutator(seed: number): (text: string) => string {
  const share = fc.nat({ max: 999 }).map((thousandths) => thousandths / 1000);
  const byte = fc.nat({ max: 255 }).map((code) => String.fromCharCode(code));
  const edit = fc.record({
    kind: fc.nat({ max: 4 }),
    at: share,
    length: fc.integer({ min: 1, max: 12 }),
    byte,
  });
  const runs = fc.sample(fc.array(edit, { minLength: 1, maxLength: 3 }), {
    seed,
    numRuns: 100_003,
  });
  let next = 0;
  return (text) =>
    (runs[next++ % runs.length] ?? []).reduce((edited, { kind, at, length, byte: other }) => {
      const from = Math.floor(at * edited.length);
      const part = edited.slice(from, from + length);
      const reversed = Buffer.from(part, 'latin1').reverse().toString('latin1');
      const replacement = ['', part.repeat(3), other, other + part, reversed][kind] ?? '';
      return edited.slice(0, from) + replacement + edited.slice(from + length);
    }, text);
}

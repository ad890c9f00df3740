import { randomInt } from 'node:crypto';
import fc from 'fast-check';
import { errorCatalogue } from '../../src/plants/errors/errors';
import { errorNumbers } from '../support/error-bodies';
import { TOKEN } from '../support/application';
import { residentMemory } from '../support/metrics';
import { useServiceHome } from '../support/service-process';
import { open } from '../support/wire';

const WARM_UP = 50_000;
const CONNECTIONS = 50;

/** A body that no few bytes more or less make a NewPlant. */
const BODY = '{"id":null,"nome":[1.5,{"tag":"\\ud800"},"Fern"],"tag":{"x":false}}';
const HEAD = `POST /plants HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKEN}\r\nContent-Type: application/json\r\n`;
const requestWith = (body: string): string =>
  `${HEAD}Content-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`;
const statuses = new Map<number, number>(
  Object.values(errorCatalogue).map(({ error, status }) => [error, status]),
);

const seed = Number(process.env.SEED ?? randomInt(2 ** 31));
const home = useServiceHome();

it(`the service withstands 100,000 malformed requests (SEED=${seed})`, async () => {
  const service = await home.start({ HEADERS_TIMEOUT: '2s', REQUEST_TIMEOUT: '2s' });
  const url = await service.url();
  const mutate = mutator(seed);
  const errors = new Set<number>();
  const strange: string[] = [];

  /** Of three, one is mutated as a whole, and of two the body, whose length is then right. */
  async function sendMalformed(count: number): Promise<void> {
    let sent = 0;
    const one = async (): Promise<void> => {
      while (sent++ < count) {
        const request = sent % 3 === 0 ? mutate(requestWith(BODY)) : requestWith(mutate(BODY));
        const [head = '', rest = ''] = (await exchange(url, request)).split('\r\n\r\n');
        if (head === '') continue;
        // Whatever follows the first answer is that to a further malformed request.
        const body = rest.slice(0, Number(/content-length: (\d+)/i.exec(head)?.[1]));
        const error = Number(/^{"error":(\d{5}),"message":".*"}$/.exec(body)?.[1]);
        errors.add(error);
        if (statuses.get(error) !== Number(head.slice(9, 12))) strange.push(body);
      }
    };
    await Promise.all(Array.from({ length: CONNECTIONS }, one));
  }

  await sendMalformed(WARM_UP);
  const before = await residentMemory(url);
  await sendMalformed(100_000);

  expect((await residentMemory(url)) - before).toBeLessThan(50);
  expect(strange).toEqual([]);
  expect(
    [errorNumbers.internal, errorNumbers.unavailable, errorNumbers.outcomeUnknown].filter((error) =>
      errors.has(error),
    ),
  ).toEqual([]);
  expect(await service.statusOf('/health/ready')).toBe(200);
  expect(await service.end()).toEqual({ code: 0, signal: null });
  expect(home.plants()).toEqual([]);
});

/** Sends a text on a connection of its own, and ends it; gives back all that came. */
async function exchange(url: URL, request: string): Promise<string> {
  const socket = open(url).setEncoding('latin1');
  let received = '';
  socket.on('data', (part: string) => (received += part));
  socket.on('error', () => undefined);
  socket.end(request, 'latin1');
  await new Promise((resolve) => socket.once('close', resolve));
  return received;
}

/** Makes a function that cuts, repeats, swaps and replaces bytes of a text here and there. */
function mutator(seed: number): (text: string) => string {
  const edit = fc.record({
    kind: fc.nat({ max: 4 }),
    thousandth: fc.nat({ max: 999 }),
    length: fc.integer({ min: 1, max: 12 }),
    byte: fc.nat({ max: 255 }).map((code) => String.fromCharCode(code)),
  });
  const runs = fc.sample(fc.array(edit, { minLength: 1, maxLength: 3 }), {
    seed,
    numRuns: 100_003,
  });
  let next = 0;
  return (text) =>
    (runs[next++ % runs.length] ?? []).reduce((edited, { kind, thousandth, length, byte }) => {
      const from = Math.floor((thousandth / 1000) * edited.length);
      const part = edited.slice(from, from + length);
      const reversed = Buffer.from(part, 'latin1').reverse().toString('latin1');
      const replacement = ['', part.repeat(3), byte, byte + part, reversed][kind] ?? '';
      return edited.slice(0, from) + replacement + edited.slice(from + length);
    }, text);
}

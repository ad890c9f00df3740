/** Sends valid requests with random changes of some bytes. Takes a minute. */
import { randomInt } from 'node:crypto';
import { text } from 'node:stream/consumers';
import fc from 'fast-check';
import { TOKEN } from '../support/application';
import { useServiceHome } from '../support/service-process';
import { openConnection } from '../support/wire';

const REQUESTS = 100_000;
const CONNECTIONS = 50;

/** A body that does not become a valid NewPlant when a few bytes change. */
const BODY = '{"id":null,"nome":[1.5,{"tag":"\\ud800"},"Fern"],"tag":{"x":false}}';
const REQUEST_HEADERS = `POST /plants HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKEN}\r\nContent-Type: application/json\r\n`;
const createRequest = (body: string): string =>
  `${REQUEST_HEADERS}Content-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`;

const seed = Number(process.env.SEED ?? randomInt(2 ** 31));
const home = useServiceHome();

it(`the service withstands 100,000 malformed requests (SEED=${seed})`, async () => {
  const service = await home.start({ HEADERS_TIMEOUT: '2s', REQUEST_TIMEOUT: '2s' });
  const url = await service.url();
  const mutate = createMutator(seed);
  const unexpected: string[] = [];
  let sent = 0;
  /** Mutates every third request as a whole, and only the body of the others, with a correct Content-Length. */
  const sendMalformed = async (): Promise<void> => {
    while (sent++ < REQUESTS) {
      const request = sent % 3 === 0 ? mutate(createRequest(BODY)) : createRequest(mutate(BODY));
      const [responseHeaders = '', rest = ''] = (await exchange(url, request)).split('\r\n\r\n');
      // A request that its mutation made incomplete gets no response.
      if (responseHeaders === '') continue;
      // A mutated request may contain a second one. Its response follows the first.
      const body = rest.slice(0, Number(/content-length: (\d+)/i.exec(responseHeaders)?.[1]));
      const error = Number(/^{"error":(\d{5}),"message":".*"}$/.exec(body)?.[1]);
      const status = Number(responseHeaders.slice(9, 12));
      if (status >= 500 || Math.floor(error / 100) !== status) unexpected.push(body);
    }
  };

  await Promise.all(Array.from({ length: CONNECTIONS }, sendMalformed));

  expect(unexpected).toEqual([]);
  expect(await service.getStatus('/health/ready')).toBe(200);
  expect(await service.end()).toEqual({ code: 0, signal: null });
  expect(home.plants()).toEqual([]);
});

/** Sends a request on a new connection, ends the connection, and returns what was received, unless it was reset. */
function exchange(url: URL, request: string): Promise<string> {
  return text(openConnection(url).end(request, 'latin1')).catch(() => '');
}

/** Creates a function that deletes, repeats, reverses, replaces and inserts bytes at random positions. */
function createMutator(seed: number): (text: string) => string {
  const edit = fc.record({
    kind: fc.nat({ max: 4 }),
    thousandth: fc.nat({ max: 999 }),
    length: fc.integer({ min: 1, max: 12 }),
    byte: fc.nat({ max: 255 }).map((code) => String.fromCharCode(code)),
  });
  const edits = fc.array(edit, { minLength: 1, maxLength: 3 });
  const runs = fc.sample(edits, { seed, numRuns: 100_003 });
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

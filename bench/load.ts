import { connect } from 'node:net';

/**
 * A load generator that costs little: each connection has one request under way, requests are
 * written as prepared text, answers are compared with what is expected. Run as a program of its own.
 *
 * Arguments, as JSON: {@link LoadOptions}. Prints {@link LoadResult} as JSON.
 */
export interface LoadOptions {
  readonly port: number;
  readonly connections: number;
  /** Seconds. */
  readonly duration: number;
  /** After so many requests it ends earlier. */
  readonly requests?: number;
  readonly token: string;
  /** The first id; every request has the next one. */
  readonly firstId: number;
  /** Characters of the name. */
  readonly nameLength: number;
  /** Of a thousand requests, how many are no NewPlant. */
  readonly badPerMille: number;
  /** Whether each request has an Idempotency-Key, made from its id. */
  readonly isKeyed?: boolean;
  /** After so many ids they begin anew, which makes replays of keyed requests; without it never. */
  readonly cycle?: number;
}

export interface LoadResult {
  readonly requests: number;
  /** Answers other than expected, in status or body. */
  readonly wrong: number;
  /** Plants that were answered 200. */
  readonly created: number;
  /** Seconds that passed. */
  readonly seconds: number;
  /** Milliseconds. */
  readonly p50: number;
}

const options = JSON.parse(process.argv[2] ?? '{}') as LoadOptions;
const name = 'Fern'.padEnd(options.nameLength, '.');
const expected = `{"name":"${name}","tag":"shade"}`;
const head =
  `POST /plants HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${options.token}\r\n` +
  'Content-Type: application/json\r\nContent-Length: ';

/** What arrives is read into this, whichever connection it is from, and decoded at once. */
const buffer = Buffer.alloc(65_536);

/** Latencies in steps of 10 µs, up to 10 s. */
const histogram = new Uint32Array(1_000_000);
let nextId = options.firstId;
let requests = 0;
let wrong = 0;
let created = 0;
let running = true;
let open = options.connections;

const began = process.hrtime.bigint();
for (let count = 0; count < options.connections; count++) drive();
setTimeout(() => (running = false), options.duration * 1000).unref();

/** Opens a connection and keeps one request under way on it. */
function drive(): void {
  let sentAt = 0;
  let bad = false;
  let answer = '';

  const socket = connect({
    port: options.port,
    host: '127.0.0.1',
    noDelay: true,
    onread: {
      buffer,
      callback: (bytes) => {
        receive(buffer.toString('latin1', 0, bytes));
        return true;
      },
    },
  });
  socket.on('connect', send);
  socket.on('error', () => wrong++);
  socket.on('close', () => {
    if (--open === 0) report();
  });

  function send(): void {
    const id = nextId++;
    if (nextId - options.firstId === options.cycle) nextId = options.firstId;
    bad = id % 1000 < options.badPerMille;
    const body = `{"id":${bad ? `"${id}"` : id},"name":"${name}","tag":"shade"}`;
    sentAt = performance.now();
    const key = options.isKeyed ? `\r\nIdempotency-Key: "creation-${id}"` : '';
    socket.write(`${head}${body.length}${key}\r\n\r\n${body}`, 'latin1');
  }

  function receive(text: string): void {
    answer += text;
    const end = answer.indexOf('\r\n\r\n');
    if (end < 0) return;
    const fields = answer.slice(0, end).toLowerCase();
    const at = fields.indexOf('content-length: ');
    const length = Number.parseInt(fields.slice(at + 16, at + 24), 10);
    if (answer.length < end + 4 + length) return;

    const status = answer.slice(9, 12);
    const body = answer.slice(end + 4);
    if (bad ? status !== '400' : status !== '200' || body !== expected) wrong++;
    else if (!bad) created++;
    requests++;
    const step = Math.floor((performance.now() - sentAt) * 100);
    const slot = Math.min(step, histogram.length - 1);
    histogram[slot] = (histogram[slot] ?? 0) + 1;
    answer = '';
    if (running && requests < (options.requests ?? Infinity)) send();
    else socket.end();
  }
}

function report(): void {
  const seconds = Number(process.hrtime.bigint() - began) / 1e9;
  const result: LoadResult = {
    requests,
    wrong,
    created,
    seconds,
    p50: median(),
  };
  console.log(JSON.stringify(result));
}

function median(): number {
  let left = requests / 2;
  return histogram.findIndex((count) => (left -= count) <= 0) / 100;
}

import { connect } from 'node:net';

/**
 * A load generator with little overhead: each connection has one request in progress, requests are written
 * as prepared strings, and responses are compared with the expected one. Runs as a separate process.
 *
 * The loop is closed by default: each connection sends its next request when it has a response. With a rate of
 * arrivals, the loop is open: requests arrive at fixed times, whether or not earlier ones have their responses, and
 * those that find no idle connection wait for one. Their latency counts from their arrival.
 *
 * Takes {@link LoadOptions} as a JSON argument. Prints {@link LoadResult} as JSON.
 */
export interface LoadOptions {
  readonly port: number;
  /** The path of the request. @default `/plants` */
  readonly path?: string;
  /** Whether the response has the plant in a property `data`. */
  readonly isInData?: boolean;
  readonly connections: number;
  /** The duration in seconds. */
  readonly duration: number;
  readonly token: string;
  /** The first id. Each request uses the next one. */
  readonly firstId: number;
  /** Whether each request has an Idempotency-Key, derived from its id. */
  readonly isKeyed?: boolean;
  /** Whether the service may reject requests with 503. They are not counted. */
  readonly mayReject?: boolean;
  /** Whether the service may lose sessions, so that requests get 504. They are not counted. */
  readonly mayLose?: boolean;
  /** How many of a hundred plants the database rejects by their name, {@link REJECTED_NAME}. They get 500. */
  readonly rejectedPercent?: number;
  /** The requests that arrive per second, if the loop is open. */
  readonly arrivalRate?: number;
}

export interface LoadResult {
  readonly requests: number;
  /** The number of responses with an unexpected status or body. */
  readonly wrong: number;
  /** The number of plants that got 200. */
  readonly created: number;
  /** The elapsed time in seconds. */
  readonly seconds: number;
  /** The median latency in milliseconds. */
  readonly p50: number;
  /** The 99th percentile of the latencies in milliseconds. */
  readonly p99: number;
  /** The 99.9th percentile of the latencies in milliseconds. */
  readonly p999: number;
}

const options = JSON.parse(process.argv[2] ?? '{}') as LoadOptions;
const plant = '{"name":"Fern","tag":"shade"}';
const expected = options.isInData ? `{"data":${plant}}` : plant;
const requestHeaders =
  `POST ${options.path ?? '/plants'} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${options.token}\r\n` +
  'Content-Type: application/json\r\nContent-Length: ';

/** The read buffer of all connections. Its content is decoded immediately. */
const buffer = Buffer.alloc(65_536);

/** The number of latencies per step of 10 µs, up to 10 s. */
const histogram = new Uint32Array(1_000_000);
let nextId = options.firstId;
let requests = 0;
let wrong = 0;
let created = 0;
let isRunning = true;
let openConnections = options.connections;

/** The name of the plants that the database rejects. */
const REJECTED_NAME = 'Weed';
const ARRIVAL_INTERVAL_MS = 1;

/** A connection without a request, if the loop is open. */
interface IdleConnection {
  send(arrivedAt: number): void;
  end(): void;
}

const idle: IdleConnection[] = [];
/** When the requests arrived that wait for an idle connection. */
const waiting: number[] = [];

const startedAt = process.hrtime.bigint();
for (let count = 0; count < options.connections; count++) drive();
const arrivals = options.arrivalRate === undefined ? undefined : startArrivals(options.arrivalRate);
setTimeout(() => {
  isRunning = false;
  clearInterval(arrivals);
  for (const connection of idle.splice(0)) connection.end();
}, options.duration * 1000).unref();

/** Makes requests arrive at a fixed rate. */
function startArrivals(perSecond: number): NodeJS.Timeout {
  let nextAt = performance.now();
  return setInterval(() => {
    for (; nextAt <= performance.now(); nextAt += 1000 / perSecond) {
      const connection = idle.pop();
      if (connection) connection.send(nextAt);
      else waiting.push(nextAt);
    }
  }, ARRIVAL_INTERVAL_MS);
}

/** Opens a connection and keeps one request in progress on it. */
function drive(): void {
  /** When the request in progress arrived; in a closed loop, when it was sent. */
  let arrivedAt = 0;
  let isRejected = false;
  let received = '';

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
  socket.on('connect', continueOrEnd);
  socket.on('error', () => wrong++);
  socket.on('close', () => {
    if (--openConnections === 0) report();
  });

  function send(at: number): void {
    const id = nextId++;
    isRejected = id % 100 < (options.rejectedPercent ?? 0);
    const body = `{"id":${id},"name":"${isRejected ? REJECTED_NAME : 'Fern'}","tag":"shade"}`;
    arrivedAt = at;
    const key = options.isKeyed ? `\r\nIdempotency-Key: "create-${id}"` : '';
    socket.write(`${requestHeaders}${body.length}${key}\r\n\r\n${body}`, 'latin1');
  }

  function receive(text: string): void {
    received += text;
    const end = received.indexOf('\r\n\r\n');
    if (end < 0) return;
    const headers = received.slice(0, end).toLowerCase();
    const at = headers.indexOf('content-length: ');
    const length = Number.parseInt(headers.slice(at + 16, at + 24), 10);
    if (received.length < end + 4 + length) return;

    const status = received.slice(9, 12);
    const body = received.slice(end + 4);
    const isUncounted = status === '503' ? options.mayReject : status === '504' && options.mayLose;
    if (isUncounted) {
      received = '';
      continueOrEnd();
      return;
    }
    const isCreated = status === '200' && body === expected;
    if (isCreated) created++;
    if (isRejected ? status !== '500' : !isCreated) wrong++;
    requests++;
    const step = Math.floor((performance.now() - arrivedAt) * 100);
    const slot = Math.min(step, histogram.length - 1);
    histogram[slot] = (histogram[slot] ?? 0) + 1;
    received = '';
    continueOrEnd();
  }

  function continueOrEnd(): void {
    const arrival = options.arrivalRate === undefined ? performance.now() : waiting.shift();
    // Requests that have arrived are sent even if no more arrive.
    const isOpen = options.arrivalRate !== undefined;
    if (arrival !== undefined && (isRunning || isOpen)) send(arrival);
    else if (isRunning) idle.push({ send, end: () => socket.end() });
    else socket.end();
  }
}

function report(): void {
  const seconds = Number(process.hrtime.bigint() - startedAt) / 1e9;
  const latencies = { p50: percentile(50), p99: percentile(99), p999: percentile(99.9) };
  const result: LoadResult = { requests, wrong, created, seconds, ...latencies };
  console.log(JSON.stringify(result));
}

function percentile(percent: number): number {
  let left = (requests * percent) / 100;
  const at = histogram.findIndex((count) => {
    left -= count;
    return left <= 0;
  });
  return at / 100;
}

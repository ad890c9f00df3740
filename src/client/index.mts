/** Where the service is, and who calls it. */
export interface PlantStoreClientOptions {
  /** The URL of the service, for example `https://plants.example.org`. It may have a path, but no query. */
  readonly url: string | URL;
  /** The bearer token, or a function that returns it. The function is called for each attempt. */
  readonly token: string | (() => string | Promise<string>);
}

/** A plant without its id. */
export interface PlantContent {
  readonly name: string;
  readonly tag?: string | undefined;
}

/** A plant to create. */
export interface NewPlant extends PlantContent {
  /** From -2^63 to 2^63 - 1. A `number` must be a safe integer. */
  readonly id: bigint | number;
}

/** Options of {@link PlantStoreClient.create}. */
export interface CreateOptions {
  /** Random by default. Store the key if you need to retry after a restart. */
  readonly idempotencyKey?: string | undefined;
  /** The time for all attempts together in milliseconds, 60,000 by default. `Infinity` means no limit. */
  readonly timeout?: number | undefined;
  /** Aborts the call. Node.js 20 prints a warning if more than ten calls share one signal. */
  readonly signal?: AbortSignal | undefined;
}

/** A plant that is stored, without its id. */
export interface CreatedPlant extends PlantContent {
  /** Whether an earlier request with this key already stored the plant. */
  readonly isReplay: boolean;
}

/** The only error of {@link PlantStoreClient.create}. `cause` is the underlying error, or the reason of an abort. */
export class CreationError extends Error {
  /** The `error` number of the last response. Undefined if Plant Store did not send it, or if there was none. */
  readonly error?: number | undefined;
  /** The HTTP status of the last response. Undefined if the last attempt got none. */
  readonly status?: number | undefined;
  /**
   * `not stored` if every attempt sent nothing, or was rejected before anything was stored. `unknown` if an
   * attempt may have succeeded: call `create` again with the same key. If `status` is set but `error` is not,
   * check the URL first.
   */
  readonly outcome: 'not stored' | 'unknown';

  constructor({ message, cause, error, status, outcome }: Failure) {
    super(message, { cause });
    this.name = 'CreationError';
    this.error = error;
    this.status = status;
    this.outcome = outcome;
  }
}

/** The result of an attempt that did not succeed, as far as the client knows. */
interface Failure extends Omit<CreationError, 'name' | 'stack'> {
  /** Whether another attempt would end in the same way. */
  readonly isFinal?: boolean;
  /** The pause that the server asks for. */
  readonly retryAfterMs?: number | undefined;
}

type Result = CreatedPlant | Failure;

/** A call of {@link PlantStoreClient.create}: its arguments, checked and with defaults. */
interface Call {
  /** The plant without its id. */
  readonly content: PlantContent;
  /** The plant in JSON. */
  readonly body: string;
  readonly key: string;
  readonly timeout: number;
  /** When the call ends, in the time of `performance.now()`. */
  readonly end: number;
  readonly signal: AbortSignal;
}

const PROPERTIES = ['name', 'tag'] as const satisfies (keyof PlantContent)[];

/** Retryable statuses: slow network, rate limit, overload, restart, or unknown outcome. */
const RETRYABLE_STATUSES = new Set([408, 429, 502, 503, 504]);

const FIRST_PAUSE_MS = 100;
const MAX_PAUSE_MS = 5000;
/** The service responds within 20 seconds. After that, the connection is probably dead. */
const MAX_ATTEMPT_MS = 25_000;
/** The longest delay of a timer. A longer one would fire immediately. */
const MAX_TIMER_MS = 2 ** 31 - 1;
/** How many characters of a response are read beyond the length of the request. */
const MAX_EXTRA_RESPONSE_CHARS = 64 * 1024;
const MAX_MESSAGE_CHARS = 500;

/** How Node.js fails before a connection is open: a system call, a code or a message. */
const CONNECT_ERRORS: readonly RegExp[] = [
  // System calls that look up the name or open the connection.
  /^(connect|getaddrinfo)$/,
  /^UND_ERR_CONNECT_TIMEOUT$/,
  // Certificates with another name or other dates, of an unknown issuer, and without one.
  /^(ERR_TLS_)?CERT_.+$/,
  /^UNABLE_TO_.+$/,
  /^(DEPTH_ZERO_)?SELF_SIGNED_CERT.*$/,
  // Ports that `fetch` blocks.
  /^bad port$/,
];

const KEY_SYNTAX = '1 to 255 visible ASCII characters, bare or quoted';
/** A key without quotation marks: visible ASCII characters except `"` and the comma. */
const BARE_KEY = /^[!#-+\--~]{1,255}$/;
/** A key in quotation marks: visible ASCII characters, with `\` before each `"` and `\`. */
const QUOTED_KEY = /^"(?:[!#-[\]-~]|\\["\\]){1,255}"$/;

/** A URL with a host, and optionally a path: no credentials (`@`), query (`?`) or fragment (`#`). */
const BASE_URL = /^https?:\/\/[^/?#@]+\/[^?#]*$/i;

/**
 * Creates plants in a plant store. Requires `fetch`.
 *
 * @example
 * const client = new PlantStoreClient({ url: 'https://plants.example.org', token });
 * await client.create({ id: 9007199254740993n, name: 'Fern' });
 */
export class PlantStoreClient {
  private readonly url: URL;
  // A function, so that logging the client does not reveal the token.
  private readonly token: () => string | Promise<string>;

  /** @throws TypeError naming the option if `url` or `token` is invalid */
  constructor({ url, token }: PlantStoreClientOptions) {
    const base = String(url).replace(/\/*$/, '/');
    if (!BASE_URL.test(base)) {
      throw new TypeError('url must be an http(s) URL without credentials, query or fragment.');
    }
    this.url = new URL('plants', base);

    if (typeof token === 'function') {
      this.token = token;
    } else {
      const text = parseToken(token);
      this.token = () => text;
    }
  }

  /**
   * Creates a plant. After a connection error, 408, 429, 502, 503 or 504, retries the request with the same
   * idempotency key. Does not follow redirects.
   * @throws CreationError if no response says that the plant is stored, also for an invalid argument
   */
  async create(plant: NewPlant, options: CreateOptions = {}): Promise<CreatedPlant> {
    let failure: Failure = { message: 'Nothing was sent.', outcome: 'not stored' };
    try {
      const call = readArguments(plant, options);
      for (let attempts = 0; ; attempts += 1) {
        // Before each attempt too, because the timer of the pause can fire late.
        assertTimeFor(0, call, failure);
        const result = await this.attempt(call);
        if ('isReplay' in result) return result;

        // An attempt that may have succeeded makes the outcome unknown, whatever follows.
        const outcome = failure.outcome === 'unknown' ? failure.outcome : result.outcome;
        failure = { ...result, outcome };
        if (failure.isFinal) throw new CreationError(failure);

        const pauseMs = choosePause(failure, attempts);
        assertTimeFor(pauseMs, call, failure);
        await pause(pauseMs, call.signal);
      }
    } catch (cause) {
      if (cause instanceof CreationError) throw cause;
      // A getter of an argument, or the token function, has thrown.
      const text = cause instanceof Error ? cause.message : 'see the cause';
      const message = `The request cannot be created: ${text}`;
      throw new CreationError({ message, cause, outcome: failure.outcome });
    }
  }

  /** Makes one attempt: gets a token, then sends the request. Rejects if there is no token. */
  private async attempt(call: Call): Promise<Result> {
    const getToken = async (): Promise<string> => parseToken(await this.token());
    const token = await withTimeout(maxAttemptMs(call), call.signal, getToken);
    if (token === undefined) return { message: 'No token: timed out', outcome: 'not stored' };

    const send = (stop: AbortSignal): Promise<Result> => this.send(call, token, stop);
    const result = await withTimeout(maxAttemptMs(call), call.signal, send);
    return result ?? { message: 'No response: timed out', outcome: 'unknown' };
  }

  /** Sends the request, and reads the response. An abort of `signal` closes the connection. */
  private async send(call: Call, token: string, signal: AbortSignal): Promise<Result> {
    const { body, key, content } = call;
    const headers = {
      Authorization: `Bearer ${token}`,
      'Content-Type': 'application/json',
      'Idempotency-Key': key,
    };
    const request = { method: 'POST', headers, body, redirect: 'manual', signal } as const;
    try {
      const response = await fetch(this.url, request);
      const text = await readText(response, body.length + MAX_EXTRA_RESPONSE_CHARS);
      const result = readResponse(response, text, content);
      if ('isReplay' in result) return result;

      // A server may repeat the request in its errors.
      const message = result.message.replaceAll(token, 'TOKEN').slice(0, MAX_MESSAGE_CHARS);
      return { ...result, message };
    } catch (error) {
      return toNoResponse(error);
    }
  }
}

/** @throws TypeError if the value cannot be sent as a token; the error does not show the value */
function parseToken(token: unknown): string {
  const text = typeof token === 'string' ? token.trim() : '';
  const isVisibleAscii = /^[!-~]+$/.test(text);
  if (isVisibleAscii) return text;
  throw new TypeError('token must be a non-empty string of visible ASCII characters.');
}

/** Reads each argument once, because it may be a getter. @throws CreationError if one is invalid */
function readArguments(plant: NewPlant, options: CreateOptions): Call {
  check('plant', plant, 'an object', isObject(plant));
  check('options', options, 'an object', isObject(options));

  const { id } = plant;
  const isExact = typeof id === 'bigint' || Number.isSafeInteger(id);
  check('id', id, 'a bigint or a safe integer', isExact);
  const content = readContent(plant);
  // JSON.stringify throws on a bigint. The first 0 is the placeholder of the id.
  const body = JSON.stringify({ id: 0, ...content }).replace('0', String(id));

  const { timeout = 60_000, signal = new AbortController().signal } = options;
  const isTime = typeof timeout === 'number' && timeout > 0;
  check('timeout', timeout, 'a number of milliseconds above 0', isTime);
  // The signal may come from another window or package, so `instanceof` may be false.
  const isSignal = Object.prototype.toString.call(signal) === '[object AbortSignal]';
  check('signal', signal, 'an AbortSignal', isSignal);

  const { idempotencyKey: key = createKey() } = options;
  const isKey = typeof key === 'string' && (BARE_KEY.test(key) || QUOTED_KEY.test(key));
  check('idempotencyKey', key, KEY_SYNTAX, isKey);

  return { content, body, key, timeout, end: performance.now() + timeout, signal };
}

/** Copies the properties of a plant except its id. @throws CreationError if one is not a string */
function readContent(plant: NewPlant): PlantContent {
  const content: Partial<Record<keyof PlantContent, string>> = {};
  for (const name of PROPERTIES) {
    const text = plant[name];
    if (text === undefined && name !== 'name') continue;
    check(name, text, 'a string', typeof text === 'string');
    content[name] = text;
  }
  return content as PlantContent;
}

/** Creates a random key. `crypto.randomUUID` is not used: browsers lack it on pages that were loaded without HTTPS. */
function createKey(): string {
  return crypto.getRandomValues(new Uint32Array(4)).join('-');
}

function isObject(value: unknown): boolean {
  return Object(value) === value;
}

/** @throws CreationError if an argument is invalid */
function check(name: string, value: unknown, expected: string, isValid: boolean): void {
  if (isValid) return;
  const text = typeof value === 'string' ? JSON.stringify(value) : String(value);
  const message = `The ${name} must be ${expected}, not ${text}.`;
  throw new CreationError({ message, outcome: 'not stored' });
}

/** How long an attempt may take. The token and the request have this limit each. */
function maxAttemptMs({ timeout, end }: Call): number {
  return Math.min(timeout / 2, MAX_ATTEMPT_MS, end - performance.now());
}

/**
 * How long an attempt must be able to take. A shorter one would probably time out, and its outcome would be unknown.
 */
function minAttemptMs({ timeout }: Call): number {
  return Math.min(timeout / 10, 1000);
}

/** @throws CreationError if the call was aborted, or has no time for this pause and another attempt */
function assertTimeFor(pauseMs: number, call: Call, failure: Failure): void {
  const { timeout, end, signal } = call;
  const isTimeLeft = performance.now() + pauseMs + minAttemptMs(call) <= end;
  if (!signal.aborted && isTimeLeft) return;
  const why = signal.aborted ? 'Aborted' : `Gave up after ${timeout} ms`;
  const cause: unknown = signal.reason ?? failure.cause;
  throw new CreationError({ ...failure, message: `${why}. ${failure.message}`, cause });
}

/**
 * Returns the pause that the server asks for, or a random one of up to twice the last maximum. It begins with 0, so
 * that clients that failed at the same time do not retry at the same time ("full jitter").
 */
function choosePause({ retryAfterMs }: Failure, attempts: number): number {
  const longestMs = Math.min(FIRST_PAUSE_MS * 2 ** attempts, MAX_PAUSE_MS);
  return Math.min(retryAfterMs ?? Math.random() * longestMs, MAX_TIMER_MS);
}

async function pause(durationMs: number, signal: AbortSignal): Promise<void> {
  const neverEnds = (): Promise<void> => new Promise(() => undefined);
  await withTimeout(durationMs, signal, neverEnds);
}

/**
 * Resolves to the result of the work, or to undefined after `limitMs` or on abort. At the end, the signal of the work
 * is aborted in any case: a connection that is still open is closed. `AbortSignal.any` is not used, because it can miss
 * a timeout.
 */
function withTimeout<T>(
  limitMs: number,
  signal: AbortSignal,
  work: (stop: AbortSignal) => Promise<T>,
): Promise<T | undefined> {
  const controller = new AbortController();
  return new Promise((resolve, reject) => {
    const end = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      // Has no effect after the work has ended.
      resolve(undefined);
      controller.abort();
    };
    // Before the timer, which would keep the process alive if this throws.
    signal.addEventListener('abort', end);
    const timer = setTimeout(end, limitMs);
    // Then there will be no event.
    if (signal.aborted) end();
    void work(controller.signal).then(resolve, reject).finally(end);
  });
}

/** Reads a response up to a number of characters, because a server may send without end. */
async function readText({ body }: Response, maxChars: number): Promise<string> {
  if (body === null) return '';
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let text = '';
  while (text.length <= maxChars) {
    const chunk: { value?: Uint8Array } = await reader.read();
    if (chunk.value === undefined) return text + decoder.decode();
    text += decoder.decode(chunk.value, { stream: true });
  }
  // The end of the attempt closes the connection.
  return `${text.slice(0, maxChars)}…`;
}

/** Decides whether a response means that the plant was created. */
function readResponse(response: Response, text: string, sent: PlantContent): Result {
  const { status, headers } = response;
  const { error, message, ...plant } = parseObject(text);
  const isSame = PROPERTIES.every((property) => plant[property] === sent[property]);
  // A captive portal or a proxy may also return 200.
  if (status === 200 && typeof plant.name === 'string' && isSame) {
    return { ...sent, isReplay: headers.get('Idempotent-Replayed') === 'true' };
  }

  const failure = {
    // Browsers hide the status of a redirect: it is 0.
    status: status === 0 ? undefined : status,
    isFinal: !RETRYABLE_STATUSES.has(status),
    retryAfterMs: readRetryAfter(headers),
  };
  const number = Number(error);
  // The service's numbers begin with the status; those in the JSON of a proxy do not.
  const isFromService = status >= 400 && Math.floor(number / 100) === status;
  if (!isFromService || typeof message !== 'string') {
    return { ...failure, message: describeForeign(response, text), outcome: 'unknown' };
  }
  // Among the 5xx responses, only 503 states that nothing was stored.
  const outcome = status < 500 || status === 503 ? 'not stored' : 'unknown';
  return { ...failure, message, error: number, outcome };
}

/** Parses a JSON object. Returns an empty object if the text is anything else. */
function parseObject(text: string): Record<string, unknown> {
  try {
    return Object(JSON.parse(text)) as Record<string, unknown>;
  } catch {
    return {};
  }
}

/** Reads `Retry-After`, a number of seconds or a date (RFC 9110 section 10.2.3). Undefined without a time to come. */
function readRetryAfter(headers: Headers): number | undefined {
  const header = headers.get('Retry-After') ?? '';
  const isSeconds = /^\d+$/.test(header);
  const delayMs = isSeconds ? Number(header) * 1000 : Date.parse(header) - Date.now();
  return delayMs > 0 ? delayMs : undefined;
}

/** Describes a response that does not come from a plant store. */
function describeForeign({ status, headers, type, url }: Response, text: string): string {
  const what = type === 'opaqueredirect' ? 'A redirect' : `Response ${status}`;
  const isMarkup = /^\s*</.test(text);
  const content = headers.get('Location') ?? (isMarkup ? 'a page' : text);
  const received = content === '' ? 'nothing' : content;
  return `${what} from ${url} is not a plant store response. Check the URL. Received: ${received}`;
}

/** Keeps only the message as `cause`: the parser error of Node.js contains the response, which may repeat the token. */
function toNoResponse(error: unknown): Failure {
  const causes = findInnermostErrors(error);
  const text = causes.map(({ message, code }) => message || (code ?? 'unknown')).join(', ');
  const cause = new Error(text);
  // Only Node.js wraps its errors. Deno and Bun may report a refused connection after a request was received.
  const isWrapped = causes[0] !== error;
  if (isWrapped && causes.every(isConnectError)) {
    return { message: `No connection: ${text}`, outcome: 'not stored', cause };
  }
  return { message: `No response: ${text}`, outcome: 'unknown', cause };
}

type SystemError = Error & { readonly code?: string; readonly syscall?: string };

/** Returns the innermost causes: one, or one per address. The error of Node.js is only `fetch failed`. */
function findInnermostErrors(error: unknown): SystemError[] {
  const { cause, errors } = Object(error) as { cause?: unknown; errors?: unknown };
  if (cause) return findInnermostErrors(cause);
  if (Array.isArray(errors) && errors.length > 0) return errors.flatMap(findInnermostErrors);
  return [Object(error) as SystemError];
}

function isConnectError({ syscall, code, message }: SystemError): boolean {
  const reason = syscall ?? code ?? message;
  return CONNECT_ERRORS.some((pattern) => pattern.test(reason));
}

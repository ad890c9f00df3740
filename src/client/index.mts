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

export interface NewPlant extends PlantContent {
  /** From -2^63 to 2^63 - 1. A `number` must be a safe integer. */
  readonly id: bigint | number;
}

export interface CreateOptions {
  /** Random by default. Store the key if you need to retry after a restart. */
  readonly idempotencyKey?: string | undefined;
  /** The time for all attempts together in milliseconds, 60,000 by default. `Infinity` means no limit. */
  readonly timeout?: number | undefined;
  /** Aborts the call. Node.js 20 prints a warning if more than ten calls share one signal. */
  readonly signal?: AbortSignal | undefined;
}

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
  readonly isFinal?: boolean;
  readonly retryAfterMs?: number | undefined;
}
type Result = CreatedPlant | Failure;

const PROPERTIES = ['name', 'tag'] as const satisfies (keyof PlantContent)[];

/** Retryable statuses: slow network, rate limit, overload, restart, or unknown outcome. */
const RETRYABLE_STATUSES = new Set([408, 429, 502, 503, 504]);
/** The longest delay of a timer. A longer one would fire immediately. */
const MAX_TIMER_MS = 2 ** 31 - 1;
/** Matches how Node.js fails before a connection is open: system call, code (time-out, certificate) or message. */
const CONNECT_ERRORS =
  /^(connect|getaddrinfo|UND_ERR_CONNECT_TIMEOUT|(ERR_TLS_)?CERT_.+|UNABLE_TO_.+|(DEPTH_ZERO_)?SELF_SIGNED_CERT.*|bad port)$/;
const KEY_SYNTAX = '1 to 255 visible ASCII characters, bare or quoted';
const KEY_PATTERN = /^(?:[!#-+\--~]{1,255}|"(?:[!#-[\]-~]|\\["\\]){1,255}")$/;
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
    if (!/^https?:\/\/[^/?#@]+\/[^?#]*$/i.test(base)) {
      throw new TypeError('url must be an http(s) URL without credentials, query or fragment.');
    }
    this.url = new URL('plants', base);
    const text = typeof token === 'function' ? undefined : parseToken(token);
    this.token = typeof token === 'function' ? token : () => String(text);
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
      const { timeout, signal } = call;
      const end = performance.now() + timeout;
      // The service responds within 20 seconds. After that, the connection is probably dead.
      const findLimit = (): number => Math.min(timeout / 2, 25_000, end - performance.now());
      // A shorter attempt would probably time out, and its outcome would be `unknown`.
      const minAttemptMs = Math.min(timeout / 10, 1000);
      const assertTimeFor = (durationMs: number): void => {
        if (!signal.aborted && performance.now() + durationMs <= end) return;
        const why = signal.aborted ? 'Aborted' : `Gave up after ${timeout} ms`;
        const cause: unknown = signal.reason ?? failure.cause;
        throw new CreationError({ ...failure, message: `${why}. ${failure.message}`, cause });
      };
      for (let delayMs = 100; ; delayMs = Math.min(2 * delayMs, 5000)) {
        // Timers can fire late.
        assertTimeFor(minAttemptMs);
        const result = await this.attempt(call, findLimit);
        if ('isReplay' in result) return result;
        failure = failure.outcome === 'unknown' ? { ...result, outcome: 'unknown' } : result;
        if (failure.isFinal) throw new CreationError(failure);
        // Full jitter, so that clients that failed at the same time do not retry at the same time.
        const pauseMs = Math.min(failure.retryAfterMs ?? Math.random() * delayMs, MAX_TIMER_MS);
        assertTimeFor(pauseMs + minAttemptMs);
        await withTimeout(pauseMs, signal, () => new Promise(() => undefined));
      }
    } catch (cause) {
      if (cause instanceof CreationError) throw cause;
      const text = cause instanceof Error ? cause.message : 'see the cause';
      const message = `The request cannot be created: ${text}`;
      throw new CreationError({ message, cause, outcome: failure.outcome });
    }
  }

  /** Makes one attempt. Rejects if there is no token. */
  private async attempt(call: Call, findLimit: () => number): Promise<Result> {
    const getToken = async (): Promise<string> => parseToken(await this.token());
    const token = await withTimeout(findLimit(), call.signal, getToken);
    if (token === undefined) return { message: 'No token: timed out', outcome: 'not stored' };
    const send = (stop: AbortSignal): Promise<Result> => this.send(call, token, stop);
    const result = await withTimeout(findLimit(), call.signal, send);
    return result ?? { message: 'No response: timed out', outcome: 'unknown' };
  }

  private async send({ body, key, content }: Call, token: string, signal: AbortSignal) {
    const headers = {
      Authorization: `Bearer ${token}`,
      'Content-Type': 'application/json',
      'Idempotency-Key': key,
    };
    try {
      const options = { method: 'POST', headers, body, redirect: 'manual', signal } as const;
      const response = await fetch(this.url, options);
      const text = await response.text();
      const json: unknown = await new Response(text).json().catch(() => undefined);
      const result = readResponse(response, text, json, content);
      if ('isReplay' in result) return result;
      // A server may repeat the request in its errors.
      return { ...result, message: result.message.replaceAll(token, 'TOKEN').slice(0, 500) };
    } catch (error) {
      return toNoResponse(error);
    }
  }
}

/** @throws TypeError if the value cannot be sent as a token; the error does not show the value */
function parseToken(token: unknown): string {
  const text = typeof token === 'string' ? token.trim() : '';
  if (/^[!-~]+$/.test(text)) return text;
  throw new TypeError('token must be a non-empty string of visible ASCII characters.');
}

type Call = ReturnType<typeof readArguments>;
/** Reads each argument once. @throws CreationError if one is invalid */
function readArguments(plant: NewPlant, options: CreateOptions) {
  check('plant', plant, 'an object', Object(plant) === plant);
  check('options', options, 'an object', Object(options) === options);
  const { id } = plant;
  check('id', id, 'a bigint or a safe integer', typeof id === 'bigint' || Number.isSafeInteger(id));
  const texts = PROPERTIES.map((name) => [name, plant[name]] as const);
  const given = texts.filter(([name, text]) => name === 'name' || text !== undefined);
  for (const [name, text] of given) check(name, text, 'a string', typeof text === 'string');
  const content = Object.fromEntries(given) as unknown as PlantContent;
  const { timeout = 60_000, signal = new AbortController().signal } = options;
  const isTime = typeof timeout === 'number' && timeout > 0;
  check('timeout', timeout, 'a number of milliseconds above 0', isTime);
  check('signal', signal, 'an AbortSignal', {}.toString.call(signal) === '[object AbortSignal]');
  const { idempotencyKey: key = crypto.getRandomValues(new Uint32Array(4)).join('-') } = options;
  check('idempotencyKey', key, KEY_SYNTAX, typeof key === 'string' && KEY_PATTERN.test(key));
  // JSON.stringify throws on a bigint. The first 0 is the placeholder of the id.
  const body = JSON.stringify({ id: 0, ...content }).replace('0', String(id));
  return { body, content, key, timeout, signal };
}

function check(name: string, value: unknown, expected: string, isValid: boolean): void {
  if (isValid) return;
  const text = typeof value === 'string' ? JSON.stringify(value) : String(value);
  const message = `The ${name} must be ${expected}, not ${text}.`;
  throw new CreationError({ message, outcome: 'not stored' });
}

/** Keeps only the message as `cause`: the parser error of Node.js contains the response, which may repeat the token. */
function toNoResponse(error: unknown): Failure {
  const causes = innermostErrors(error);
  const text = causes.map(({ message, code }) => message || (code ?? 'unknown')).join(', ');
  const cause = new Error(text);
  // Only Node.js wraps its errors. Deno and Bun may report a refused connection after a request was received.
  const reasons = causes.map(({ syscall, code, message }) => syscall ?? code ?? message);
  if (causes[0] !== error && reasons.every((reason) => CONNECT_ERRORS.test(reason))) {
    return { message: `No connection: ${text}`, outcome: 'not stored', cause };
  }
  return { message: `No response: ${text}`, outcome: 'unknown', cause };
}

type SystemError = Error & { readonly code?: string; readonly syscall?: string };
/** Returns the innermost causes: one, or one per address. The error of Node.js is only `fetch failed`. */
function innermostErrors(error: unknown): SystemError[] {
  const { cause, errors } = Object(error) as { cause?: unknown; errors?: unknown };
  if (cause) return innermostErrors(cause);
  if (Array.isArray(errors) && errors.length > 0) return errors.flatMap(innermostErrors);
  return [Object(error) as SystemError];
}

/** Decides whether a response means that the plant was created. */
function readResponse(response: Response, text: string, json: unknown, sent: PlantContent): Result {
  const { status, headers, type, url } = response;
  const { error, message, ...plant } = Object(json) as Record<string, unknown>;
  const isSame = PROPERTIES.every((property) => plant[property] === sent[property]);
  // A captive portal or a proxy may also return 200.
  if (status === 200 && typeof plant.name === 'string' && isSame) {
    return { ...sent, isReplay: headers.get('Idempotent-Replayed') === 'true' };
  }
  const header = headers.get('Retry-After') ?? '';
  const delayMs = /^\d+$/.test(header) ? Number(header) * 1000 : Date.parse(header) - Date.now();
  const retryAfterMs = delayMs > 0 ? delayMs : undefined;
  // Browsers hide the status of a redirect.
  const isFinal = !RETRYABLE_STATUSES.has(status);
  const failure = { status: status || undefined, isFinal, retryAfterMs };
  const number = Number(error);
  // The service's numbers begin with the status; those in the JSON of a proxy do not.
  if (status < 400 || typeof message !== 'string' || Math.floor(number / 100) !== status) {
    const what = type === 'opaqueredirect' ? 'A redirect' : `Response ${status}`;
    const content = headers.get('Location') ?? (/^\s*</.test(text) ? 'a page' : text);
    const sentence = `${what} from ${url} is not a plant store response. Check the URL. Received: ${content || 'nothing'}`;
    return { ...failure, message: sentence, outcome: 'unknown' };
  }
  const outcome = status < 500 || status === 503 ? 'not stored' : 'unknown';
  return { ...failure, message, error: number, outcome };
}

type Work<T> = (stop: AbortSignal) => Promise<T>;
/** Resolves to undefined after `limitMs` or on abort. `AbortSignal.any` is not used, because it can miss a timeout. */
function withTimeout<T>(limitMs: number, signal: AbortSignal, work: Work<T>) {
  const controller = new AbortController();
  return new Promise<T | undefined>((resolve, reject) => {
    const end = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve(undefined);
      controller.abort();
    };
    signal.addEventListener('abort', end);
    const timer = setTimeout(end, limitMs);
    if (signal.aborted) end();
    void work(controller.signal).then(resolve, reject).finally(end);
  });
}

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
  /** A UUID by default. Store the key if you need to retry after a restart. */
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

/**
 * The only error that {@link PlantStoreClient.create} rejects with. `cause` is the underlying error, or the
 * reason of an abort.
 */
export class CreationError extends Error {
  /** The `error` number of the last response. Undefined if Plant Store did not send it, or if there was none. */
  readonly error?: number | undefined;
  /** The HTTP status of the last response. Undefined if the last attempt got none. */
  readonly status?: number | undefined;
  /**
   * `not stored` if every attempt was rejected before anything was stored. `unknown` if an attempt may have
   * succeeded: call `create` again with the same key. If `status` is set but `error` is not, check the URL
   * first.
   */
  readonly outcome: 'not stored' | 'unknown';

  constructor({ message, cause, error, status, outcome }: CreationErrorFields) {
    super(message, { cause });
    this.name = 'CreationError';
    this.error = error;
    this.status = status;
    this.outcome = outcome;
  }
}

type CreationErrorFields = Pick<
  CreationError,
  'message' | 'cause' | 'error' | 'status' | 'outcome'
>;

/** The result of an attempt that did not succeed, as far as the client knows. */
interface Failure extends CreationErrorFields {
  readonly isFinal?: boolean;
  readonly retryAfterMs?: number | undefined;
}

/** The properties of a plant in a response. */
const CONTENT_PROPERTIES = Object.keys({
  name: true,
  tag: true,
} satisfies Record<keyof PlantContent, true>) as (keyof PlantContent)[];

/** Retryable statuses: slow network, rate limit, overload, restart, or unknown outcome. */
const RETRYABLE_STATUSES = new Set([408, 429, 502, 503, 504]);
/** The longest delay of a timer. A longer one would fire immediately. */
const MAX_TIMER_MS = 2 ** 31 - 1;
/** How many characters a response may have beyond the length of the request. */
const MAX_EXTRA_RESPONSE_CHARS = 64 * 1024;

/**
 * Creates plants in a plant store. Requires `fetch` and `crypto.randomUUID`. Browsers support the latter
 * only on pages loaded over HTTPS or from localhost.
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
      throw new TypeError(
        'url must be an absolute http: or https: URL without credentials, query or fragment.',
      );
    }
    this.url = new URL('plants', base);
    const text = typeof token === 'function' ? undefined : parseToken(token);
    this.token = typeof token === 'function' ? token : () => String(text);
  }

  /**
   * Creates a plant. After a connection error, 408, 429, 502, 503 or 504, retries the request with the same
   * idempotency key. Does not follow redirects.
   * @throws CreationError if the service rejects the request, if the request cannot be created, on abort,
   *   and if `timeout` leaves no time for another attempt
   */
  async create(plant: NewPlant, options: CreateOptions = {}): Promise<CreatedPlant> {
    const { idempotencyKey: key = crypto.randomUUID(), timeout = 60_000, signal } = options;
    const body = toJson(plant);
    if (typeof timeout !== 'number' || !(timeout > 0)) {
      throw invalidValueError('timeout', 'a number of milliseconds above 0', timeout);
    }
    const end = performance.now() + timeout;
    // A shorter attempt would probably time out, and its outcome would be `unknown`.
    const minAttemptMs = Math.min(timeout / 10, 1000);
    let outcome: CreationError['outcome'] = 'not stored';
    let failure: Failure = { message: 'Nothing was sent.', outcome };
    const assertTimeFor = (durationMs: number): void => {
      if (performance.now() + durationMs <= end) return;
      const message = `Gave up after ${timeout} ms. ${failure.message}`;
      throw new CreationError({ ...failure, message, outcome });
    };

    for (let delayMs = 100; ; delayMs = Math.min(2 * delayMs, 5000)) {
      if (signal?.aborted) {
        const message = `Aborted. ${failure.message}`;
        throw new CreationError({ ...failure, message, outcome, cause: signal.reason });
      }
      // Timers can fire late.
      assertTimeFor(minAttemptMs);
      // The service responds within 20 seconds. After that, the connection is probably dead.
      const limitMs = Math.min(timeout / 2, 25_000, end - performance.now());
      const attempt = withTimeout(limitMs, signal, (stop) => this.send(body, key, stop));
      const result = await attempt.catch(toNoResponse);
      if ('isReplay' in result) return result;
      failure = result;
      if (failure.outcome === 'unknown') outcome = 'unknown';
      if (failure.isFinal) throw new CreationError({ ...failure, outcome });
      // Full jitter, so that clients that failed at the same time do not retry at the same time.
      const pauseMs = Math.min(failure.retryAfterMs ?? Math.random() * delayMs, MAX_TIMER_MS);
      assertTimeFor(pauseMs + minAttemptMs);
      await withTimeout(pauseMs, signal, () => new Promise(() => undefined)).catch(() => undefined);
    }
  }

  private async send(body: string, key: string, end: AbortSignal): Promise<CreatedPlant | Failure> {
    let request: Request;
    let token: string;
    try {
      // Checked here, because the error of `Request` would show a malformed token.
      token = parseToken(await this.token());
      const headers = {
        Authorization: `Bearer ${token}`,
        'Content-Type': 'application/json',
        'Idempotency-Key': key,
      };
      const options = { method: 'POST', headers, body, redirect: 'manual', signal: end } as const;
      request = new Request(this.url, options);
    } catch (cause) {
      const message = `The request cannot be created: ${String(cause)}`;
      return { message, outcome: 'not stored', cause, isFinal: true };
    }
    const response = await fetch(request);
    const text = await readText(response, body.length + MAX_EXTRA_RESPONSE_CHARS);
    const result = readResponse(response, text, parseObject(body));
    if ('isReplay' in result) return result;
    // A server may repeat the request in its errors.
    return { ...result, message: result.message.replaceAll(token, 'TOKEN').slice(0, 500) };
  }
}

/** @throws TypeError if the value cannot be sent as a token; the error does not show the value */
function parseToken(token: unknown): string {
  const text = typeof token === 'string' ? token.trim() : '';
  if (/^[!-~]+$/.test(text)) return text;
  throw new TypeError('token must be a non-empty string of visible ASCII characters.');
}

/** @throws CreationError if the id is not an exact integer */
function toJson(plant: NewPlant): string {
  const { id } = plant;
  if (typeof id !== 'bigint' && !Number.isSafeInteger(id)) {
    throw invalidValueError('id', 'a bigint or a safe integer', id);
  }
  // JSON.stringify throws on a bigint. The first 0 is the placeholder of the id.
  return JSON.stringify({ id: 0, ...contentOf(plant) }).replace('0', String(id));
}

function contentOf(plant: Partial<PlantContent>): PlantContent {
  const entries = CONTENT_PROPERTIES.map((property) => [property, plant[property]] as const);
  return Object.fromEntries(
    entries.filter(([, value]) => value !== undefined),
  ) as unknown as PlantContent;
}

function invalidValueError(name: string, expected: string, value: unknown): CreationError {
  const text = typeof value === 'string' ? JSON.stringify(value) : String(value);
  const message = `The ${name} must be ${expected}, not ${text}.`;
  return new CreationError({ message, outcome: 'not stored' });
}

/**
 * Converts the error of an attempt. Keeps only its code and message as `cause`, because the parser error of
 * Node.js contains the bytes of the response, which may repeat the token.
 */
function toNoResponse(error: unknown): Failure {
  const { code, message } = innermostError(error);
  const cause = Object.assign(new Error(message), code !== undefined && { code });
  return { message: `No response: ${message || (code ?? 'unknown')}`, outcome: 'unknown', cause };
}

/** Returns the innermost cause. The error of Node.js is only `fetch failed`; its causes contain the reason. */
function innermostError(error: unknown): { readonly message: string; readonly code?: string } {
  const { cause } = error as Error;
  return cause ? innermostError(cause) : (error as Error);
}

/** Reads the body of a response. If it is longer than `limit` characters, returns the beginning, which is not JSON. */
async function readText({ body }: Response, limit: number): Promise<string> {
  const decoder = new TextDecoder();
  const reader = body?.getReader();
  let text = '';
  for (;;) {
    const chunk: { value?: Uint8Array } | undefined = await reader?.read();
    if (!chunk?.value) return text + decoder.decode();
    text += decoder.decode(chunk.value, { stream: true });
    // The abort at the end of the attempt closes the connection.
    if (text.length > limit) return `${text}…`;
  }
}

/** Decides whether a response means that the plant was created. */
function readResponse(
  { status, headers, type, url }: Response,
  text: string,
  sent: Record<string, unknown>,
): CreatedPlant | Failure {
  const { error, message, ...plant } = parseObject(text);
  const isSame = CONTENT_PROPERTIES.every((property) => plant[property] === sent[property]);
  // A captive portal or a proxy may also return 200.
  if (status === 200 && typeof plant.name === 'string' && isSame) {
    return { ...contentOf(sent), isReplay: headers.get('Idempotent-Replayed') === 'true' };
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
    return {
      ...failure,
      message: `${what} from ${url} is not a plant store response. Check the URL. Received: ${content || 'nothing'}`,
      outcome: 'unknown',
    };
  }
  const outcome = status < 500 || status === 503 ? 'not stored' : 'unknown';
  return { ...failure, message, error: number, outcome };
}

/** Parses a JSON object. Returns an empty object if the text is anything else. */
function parseObject(text: string): Record<string, unknown> {
  try {
    return { ...(JSON.parse(text) as object) };
  } catch {
    return {};
  }
}

/** Rejects after `limitMs` milliseconds or on abort. `AbortSignal.any` is not used, because it can miss a timeout. */
function withTimeout<T>(
  limitMs: number,
  outer: AbortSignal | undefined,
  work: (stop: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  return new Promise<T>((resolve, reject) => {
    const end = (): void => {
      clearTimeout(timer);
      // Also removes the abort listener.
      controller.abort();
      reject(new Error('timed out'));
    };
    const timer = setTimeout(end, limitMs);
    outer?.addEventListener('abort', end, { signal: controller.signal });
    if (outer?.aborted) end();
    void work(controller.signal).then(resolve, reject).finally(end);
  });
}

export interface PlantStoreClientOptions {
  /** Where the service is, for example `https://plants.example.org`; it may have a path, but no query. */
  readonly url: string | URL;
  /** The bearer token, or a function that gives it and is called for each attempt. */
  readonly token: string | (() => string | Promise<string>);
}

/** All of a plant but its id. */
export interface PlantContent {
  readonly name: string;
  readonly tag?: string | undefined;
}

export interface NewPlant extends PlantContent {
  /** From -2^63 to 2^63 - 1; a number only if it is a safe integer. */
  readonly id: bigint | number;
}

export interface CreateOptions {
  /** A UUID by default. A caller that stores the key can repeat the creation after a restart. */
  readonly idempotencyKey?: string | undefined;
  /** Milliseconds for all attempts together, 60,000 by default; `Infinity` for no limit. */
  readonly timeout?: number | undefined;
  /** Ends the attempts. Node.js 20 prints a warning if more than ten calls share it. */
  readonly signal?: AbortSignal | undefined;
}

export interface CreatedPlant extends PlantContent {
  /** Whether an earlier request with this key had stored the plant. */
  readonly isReplay: boolean;
}

/** The only error of {@link PlantStoreClient.create}. `cause` is what failed, or the reason of an abort. */
export class CreationError extends Error {
  /** The number of the last error of the service; undefined if something else answered, or nothing. */
  readonly error?: number | undefined;
  /** The HTTP status of the last answer; undefined if the last attempt got none. */
  readonly status?: number | undefined;
  /**
   * `not stored` if the service refused each attempt, `unknown` if an attempt may have succeeded: then
   * repeat the creation with the same key. If there is a `status` without an `error`, check the URL first.
   */
  readonly outcome: 'not stored' | 'unknown';

  constructor({ message, cause, error, status, outcome }: Problem) {
    super(message, { cause });
    this.name = 'CreationError';
    this.error = error;
    this.status = status;
    this.outcome = outcome;
  }
}

type Problem = Pick<CreationError, 'message' | 'cause' | 'error' | 'status' | 'outcome'>;

/** An attempt that created nothing, as far as the client knows. */
interface Failure extends Problem {
  readonly isFinal?: boolean;
  /** Milliseconds. */
  readonly retryAfter?: number | undefined;
}

/** The properties of a plant that the service returns. */
const CONTENT_PROPERTIES = Object.keys({
  name: true,
  tag: true,
} satisfies Record<keyof PlantContent, true>) as (keyof PlantContent)[];

/** Statuses that pass: the network was slow, or the service has too much to do, or starts anew. */
const TRANSIENT = new Set([408, 429, 502, 503, 504]);
/** The longest time of a timer, in milliseconds: a longer one would end at once. */
const LONGEST_PAUSE = 2 ** 31 - 1;
/** The characters that an answer may have beyond those that were sent. */
const ANSWER_MARGIN = 64 * 1024;

/**
 * Creates plants in a plant store. It needs `fetch`, and `crypto.randomUUID` for the keys, which
 * browsers have only on pages from HTTPS or the same machine.
 *
 * @example
 * const client = new PlantStoreClient({ url: 'https://plants.example.org', token });
 * await client.create({ id: 9007199254740993n, name: 'Fern' });
 */
export class PlantStoreClient {
  private readonly url: URL;
  // A function, so that a logged client does not show the token.
  private readonly token: () => string | Promise<string>;

  /** @throws TypeError that names the option, if `url` or `token` cannot be used */
  constructor({ url, token }: PlantStoreClientOptions) {
    const base = String(url).replace(/\/*$/, '/');
    if (!/^https?:\/\/[^/?#@]+\/[^?#]*$/i.test(base)) {
      throw new TypeError(
        'url must be an absolute URL of http: or https:, without user, query and fragment.',
      );
    }
    this.url = new URL('plants', base);
    const text = typeof token === 'function' ? undefined : checkToken(token);
    this.token = typeof token === 'function' ? token : () => String(text);
  }

  /**
   * Creates a plant. Repeats the request, with one key, after a connection error, 408, 429, 502, 503
   * or 504. Follows no redirect.
   * @throws CreationError if the service refuses the request, if the request cannot be made, at an
   *   abort, and if `timeout` leaves no time for another attempt
   */
  async create(plant: NewPlant, options: CreateOptions = {}): Promise<CreatedPlant> {
    const { idempotencyKey: key = crypto.randomUUID(), timeout = 60_000, signal } = options;
    const body = toJson(plant);
    if (typeof timeout !== 'number' || !(timeout > 0)) {
      throw refuseOption('timeout', 'a number of milliseconds above 0', timeout);
    }
    const end = performance.now() + timeout;
    // A shorter attempt would hardly be answered, and its outcome would be `unknown`.
    const shortest = Math.min(timeout / 10, 1000);
    let outcome: CreationError['outcome'] = 'not stored';
    let failure: Failure = { message: 'Nothing was sent.', outcome };
    const assertTimeFor = (time: number): void => {
      if (performance.now() + time <= end) return;
      const message = `No success within ${timeout} ms. ${failure.message}`;
      throw new CreationError({ ...failure, message, outcome });
    };

    // Milliseconds.
    for (let delay = 100; ; delay = Math.min(2 * delay, 5000)) {
      if (signal?.aborted) {
        const message = `Aborted. ${failure.message}`;
        throw new CreationError({ ...failure, message, outcome, cause: signal.reason });
      }
      // A pause may take longer than it should.
      assertTimeFor(shortest);
      // A connection may be dead without notice; the service answers within 20 seconds.
      const limit = Math.min(timeout / 2, 25_000, end - performance.now());
      const attempt = within(limit, signal, (stop) => this.send(body, key, stop));
      const result = await attempt.catch(noAnswer);
      if ('isReplay' in result) return result;
      failure = result;
      if (failure.outcome === 'unknown') outcome = 'unknown';
      if (failure.isFinal) throw new CreationError({ ...failure, outcome });
      // Full jitter, so that clients that failed together do not come back together.
      const pause = Math.min(failure.retryAfter ?? Math.random() * delay, LONGEST_PAUSE);
      assertTimeFor(pause + shortest);
      await within(pause, signal, () => new Promise(() => undefined)).catch(() => undefined);
    }
  }

  private async send(body: string, key: string, end: AbortSignal): Promise<CreatedPlant | Failure> {
    let request: Request;
    let token: string;
    try {
      // The error of `Request` would show a malformed one.
      token = checkToken(await this.token());
      const headers = {
        Authorization: `Bearer ${token}`,
        'Content-Type': 'application/json',
        'Idempotency-Key': key,
      };
      const options = { method: 'POST', headers, body, redirect: 'manual', signal: end } as const;
      request = new Request(this.url, options);
    } catch (cause) {
      const message = `The request cannot be made: ${String(cause)}`;
      return { message, outcome: 'not stored', cause, isFinal: true };
    }
    const response = await fetch(request);
    const text = await readText(response, body.length + ANSWER_MARGIN);
    const result = read(response, text, parse(body));
    if ('isReplay' in result) return result;
    // A server may show the request in its errors.
    return { ...result, message: result.message.replaceAll(token, 'TOKEN').slice(0, 500) };
  }
}

/** @throws TypeError if it cannot be sent as a token; the error does not show it */
function checkToken(token: unknown): string {
  const text = typeof token === 'string' ? token.trim() : '';
  if (/^[!-~]+$/.test(text)) return text;
  throw new TypeError('token must be a string of visible ASCII characters, and not empty.');
}

/** @throws CreationError if the id is not an exact integer */
function toJson(plant: NewPlant): string {
  const { id } = plant;
  if (typeof id !== 'bigint' && !Number.isSafeInteger(id)) {
    throw refuseOption('id', 'a bigint or a safe integer', id);
  }
  // JSON.stringify does not write a bigint. The first 0 is the id.
  return JSON.stringify({ id: 0, ...contentOf(plant) }).replace('0', String(id));
}

function contentOf(plant: Partial<PlantContent>): PlantContent {
  const entries = CONTENT_PROPERTIES.map((property) => [property, plant[property]] as const);
  return Object.fromEntries(
    entries.filter(([, value]) => value !== undefined),
  ) as unknown as PlantContent;
}

function refuseOption(name: string, expected: string, value: unknown): CreationError {
  const text = typeof value === 'string' ? JSON.stringify(value) : String(value);
  const message = `The ${name} must be ${expected}, not ${text}.`;
  return new CreationError({ message, outcome: 'not stored' });
}

/**
 * The cause keeps only code and message of what failed: the parser's error of Node.js holds the bytes
 * of the answer, which may repeat the token.
 */
function noAnswer(error: unknown): Failure {
  const { code, message } = innermostError(error);
  const cause = Object.assign(new Error(message), code !== undefined && { code });
  return { message: `No answer: ${message || (code ?? 'unknown')}`, outcome: 'unknown', cause };
}

/** Node.js says `fetch failed`. Only a cause says why, by a message or by a code. */
function innermostError(error: unknown): { readonly message: string; readonly code?: string } {
  const { cause } = error as Error;
  return cause ? innermostError(cause) : (error as Error);
}

/** The text of an answer; its beginning, which is no JSON, if it is longer than `limit` characters. */
async function readText({ body }: Response, limit: number): Promise<string> {
  const decoder = new TextDecoder();
  const reader = body?.getReader();
  let text = '';
  for (;;) {
    const chunk: { value?: Uint8Array } | undefined = await reader?.read();
    if (!chunk?.value) return text + decoder.decode();
    text += decoder.decode(chunk.value, { stream: true });
    // The abort at the end of the attempt ends the answer.
    if (text.length > limit) return `${text}…`;
  }
}

/** What an answer means for a plant that was sent. */
function read(
  { status, headers, type, url }: Response,
  text: string,
  sent: Record<string, unknown>,
): CreatedPlant | Failure {
  const { error, message, ...answer } = parse(text);
  const isSame = CONTENT_PROPERTIES.every((property) => answer[property] === sent[property]);
  // A portal or a proxy may answer 200, too.
  if (status === 200 && typeof answer.name === 'string' && isSame) {
    return { ...contentOf(sent), isReplay: headers.get('Idempotent-Replayed') === 'true' };
  }
  const field = headers.get('Retry-After') ?? '';
  const delay = /^\d+$/.test(field) ? Number(field) * 1000 : Date.parse(field) - Date.now();
  const retryAfter = delay > 0 ? delay : undefined;
  // Browsers hide the status of a redirect.
  const failure = { status: status || undefined, isFinal: !TRANSIENT.has(status), retryAfter };
  const number = Number(error);
  // The service's numbers begin with the status; those in the JSON of a proxy do not.
  if (status < 400 || typeof message !== 'string' || Math.floor(number / 100) !== status) {
    const what = type === 'opaqueredirect' ? 'A redirect' : `Answer ${status}`;
    const content = headers.get('Location') ?? (/^\s*</.test(text) ? 'a page' : text);
    return {
      ...failure,
      message: `Is ${url} the URL of a plant store? ${what} is not from one: ${content}`,
      outcome: 'unknown',
    };
  }
  const outcome = status < 500 || status === 503 ? 'not stored' : 'unknown';
  return { ...failure, message, error: number, outcome };
}

/** The members of a JSON object; none if the text is anything else. */
function parse(text: string): Record<string, unknown> {
  try {
    return { ...(JSON.parse(text) as object) };
  } catch {
    return {};
  }
}

/** Rejects after `limit` milliseconds or at an abort; `AbortSignal.any` can miss a time-out. */
function within<T>(
  limit: number,
  outer: AbortSignal | undefined,
  work: (stop: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  return new Promise<T>((resolve, reject) => {
    const end = (): void => {
      clearTimeout(timer);
      // Also removes the listener.
      controller.abort();
      reject(new Error('nothing came in time'));
    };
    const timer = setTimeout(end, limit);
    outer?.addEventListener('abort', end, { signal: controller.signal });
    if (outer?.aborted) end();
    void work(controller.signal).then(resolve, reject).finally(end);
  });
}

export interface PlantStoreClientOptions {
  /** Where the service is, for example `https://plants.example.org`; it may have a path. */
  readonly url: string | URL;
  /** The bearer token, or a function that gives it and is called for each attempt. */
  readonly token: string | (() => string | Promise<string>);
}

export interface NewPlant {
  /** From -2^63 to 2^63 - 1; a number only if it is a safe integer. */
  readonly id: bigint | number;
  readonly name: string;
  readonly tag?: string | undefined;
}

export interface CreateOptions {
  /** A UUID by default. A caller that stores the key can repeat the creation after a restart. */
  readonly idempotencyKey?: string | undefined;
  /** Milliseconds for all attempts together, 60,000 by default. */
  readonly timeout?: number | undefined;
  /** Ends the attempts. Node.js 20 prints a warning if more than ten calls share it. */
  readonly signal?: AbortSignal | undefined;
}

export interface CreatedPlant {
  readonly name: string;
  readonly tag?: string;
  /** Whether an earlier request with this key had stored the plant. */
  readonly isReplay: boolean;
}

/** The only error of {@link PlantStoreClient.create}. `cause` is what failed, or the reason of an abort. */
export class PlantStoreError extends Error {
  /** The number of the last error of the service; undefined if something else answered, or nothing. */
  readonly error?: number | undefined;
  /** The HTTP status of the last answer; undefined if the last attempt got none. */
  readonly status?: number | undefined;
  /** `not stored` if the service refused each attempt, `unknown` if an attempt may have succeeded. */
  readonly outcome: 'not stored' | 'unknown';

  constructor({ message, cause, error, status, outcome }: Problem) {
    super(message, { cause });
    this.name = 'PlantStoreError';
    this.error = error;
    this.status = status;
    this.outcome = outcome;
  }
}

type Problem = Pick<PlantStoreError, 'message' | 'cause' | 'error' | 'status' | 'outcome'>;

/** An attempt that created nothing, as far as the client knows. */
interface Failure extends Problem {
  readonly isFinal?: boolean;
  /** Milliseconds. */
  readonly retryAfter?: number | undefined;
}

/** The statuses that another attempt may change. */
const TRANSIENT = new Set([408, 429, 503, 504]);

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

  /** @throws TypeError if `url` is not an absolute URL */
  constructor({ url, token }: PlantStoreClientOptions) {
    this.url = new URL('plants', String(url).replace(/\/*$/, '/'));
    this.token = typeof token === 'function' ? token : () => token;
  }

  /**
   * Creates a plant. Repeats the request, with one key, after a connection error, 408, 429, 503 or 504.
   * @throws PlantStoreError if the service refuses the request, if the request cannot be made, at an
   *   abort, and if the next attempt would begin after `timeout`
   */
  async create(plant: NewPlant, options: CreateOptions = {}): Promise<CreatedPlant> {
    const { idempotencyKey: key = crypto.randomUUID(), timeout = 60_000, signal } = options;
    const end = performance.now() + timeout;
    const body = toJson(plant);
    let outcome: PlantStoreError['outcome'] = 'not stored';
    let failure: Failure = { message: 'Nothing was sent.', outcome };

    // Milliseconds.
    for (let delay = 100; ; delay = Math.min(2 * delay, 5000)) {
      if (signal?.aborted) {
        const message = `Aborted. ${failure.message}`;
        throw new PlantStoreError({ ...failure, message, outcome, cause: signal.reason });
      }
      // A connection may be dead without notice; the service answers within 20 seconds.
      const limit = Math.min(timeout / 2, 25_000, end - performance.now());
      const attempt = within(limit, signal, (stop) => this.send(body, key, stop));
      const result = await attempt.catch(noAnswer);
      if ('isReplay' in result) return result;
      failure = result;
      if (failure.outcome === 'unknown') outcome = 'unknown';
      if (failure.isFinal) throw new PlantStoreError({ ...failure, outcome });
      // Full jitter, so that clients that failed together do not come back together.
      const pause = failure.retryAfter ?? Math.random() * delay;
      if (!(performance.now() + pause < end)) {
        const message = `No success within ${timeout} ms. ${failure.message}`;
        throw new PlantStoreError({ ...failure, message, outcome });
      }
      await within(pause, signal, () => new Promise(() => undefined)).catch(() => undefined);
    }
  }

  private async send(body: string, key: string, end: AbortSignal): Promise<CreatedPlant | Failure> {
    let request: Request;
    try {
      const token = (await this.token()).trim();
      // The error of `Request` would show it.
      if (!/^[!-~]+$/.test(token)) throw new TypeError('the token is not visible ASCII');
      const headers = {
        Authorization: `Bearer ${token}`,
        'Content-Type': 'application/json',
        'Idempotency-Key': key,
      };
      request = new Request(this.url, { method: 'POST', headers, body, signal: end });
    } catch (cause) {
      const message = `The request cannot be made: ${String(cause)}`;
      return { message, outcome: 'not stored', cause, isFinal: true };
    }
    const response = await fetch(request);
    return read(response, await response.text());
  }
}

/** @throws PlantStoreError if the id is not an exact integer */
function toJson({ id, name, tag }: NewPlant): string {
  if (typeof id !== 'bigint' && !Number.isSafeInteger(id)) {
    const message = `The id must be a bigint or a safe integer, not ${String(id)}.`;
    throw new PlantStoreError({ message, outcome: 'not stored' });
  }
  // JSON.stringify does not write a bigint. The first 0 is the id.
  return JSON.stringify({ id: 0, name, tag }).replace('0', String(id));
}

function noAnswer(cause: unknown): Failure {
  return { message: `No answer: ${String(cause)}`, outcome: 'unknown', cause };
}

function read({ status, headers }: Response, text: string): CreatedPlant | Failure {
  const { name, tag, error, message } = parse(text);
  if (status === 200 && typeof name === 'string') {
    const isReplay = headers.get('Idempotent-Replayed') === 'true';
    return { name, ...(typeof tag === 'string' && { tag }), isReplay };
  }
  const field = headers.get('Retry-After') ?? '';
  const delay = /^\d+$/.test(field) ? Number(field) * 1000 : Date.parse(field) - Date.now();
  const retryAfter = delay > 0 ? delay : undefined;
  const failure = { status, isFinal: !TRANSIENT.has(status), retryAfter };
  const number = Number(error);
  // The service's numbers begin with the status; those in the JSON of a proxy do not.
  if (typeof message !== 'string' || Math.floor(number / 100) !== status) {
    const page = `Answer ${status} has no Error body of the service: ${text.slice(0, 200)}`;
    return { ...failure, message: page, outcome: 'unknown' };
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
      reject(new Error('given up'));
    };
    const timer = setTimeout(end, limit);
    outer?.addEventListener('abort', end, { signal: controller.signal });
    if (outer?.aborted) end();
    void work(controller.signal).then(resolve, reject).finally(end);
  });
}

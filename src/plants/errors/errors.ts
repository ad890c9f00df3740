import { HttpException, type HttpExceptionOptions } from '@nestjs/common';

/** An error of the catalogue. */
export interface CatalogueEntry {
  /** Stable number, an int32. */
  readonly error: number;
  /** HTTP status code, RFC 9110 section 15: the first three digits of the number. */
  readonly status: number;
  /** When the error occurs, as a sentence. */
  readonly meaning: string;
  /** The outcome of a create request that gets this error; undefined for errors that any request can get. */
  readonly outcome: RequestOutcome | undefined;
  /** Headers of every response with this error. */
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * The outcome of a create request, for metrics and logs:
 *
 * - `created`, `replayed`: the plant is stored, by this request or by an earlier one with the same key.
 * - `invalid`: the content of the request was rejected.
 * - `taken`: a plant with the id already exists.
 * - `rejected`: the database rejected the plant, for example by a constraint of the operator.
 * - `unavailable`: it was rejected before anything was stored.
 * - `unknown`: the plant may or may not be stored.
 */
export type RequestOutcome =
  'created' | 'replayed' | 'invalid' | 'taken' | 'rejected' | 'unavailable' | 'unknown';

function entry(
  error: number,
  meaning: string,
  outcome: RequestOutcome | undefined,
  headers = {},
): CatalogueEntry {
  return { error, status: Math.floor(error / 100), meaning, outcome, headers };
}

/** RFC 6750 section 3. */
const CHALLENGE = 'Bearer realm="plants"';

/**
 * Every error that the service can return. A number never gets a second meaning. The filters, the responses on a
 * socket and the OpenAPI document come from it; docs/errors.md and the README are compared with it.
 */
export const errorCatalogue = {
  malformedRequest: entry(
    40000,
    'The HTTP request is malformed: its request line, headers or framing.',
    undefined,
  ),
  notJson: entry(40001, 'The body is not JSON: invalid syntax, not UTF-8, or empty.', 'invalid'),
  invalidPlant: entry(
    40002,
    'The body is JSON but not a NewPlant; the message says what is wrong with each property.',
    'invalid',
  ),
  idTaken: entry(40003, 'A plant with this id already exists.', 'taken'),
  unsupportedMediaType: entry(
    40004,
    'The Content-Type is not application/json in UTF-8, or there is a Content-Encoding other than identity.',
    'invalid',
  ),
  bodyTooLarge: entry(40005, 'The body is larger than the limit.', 'invalid'),
  invalidIdempotencyKey: entry(
    40006,
    'The Idempotency-Key header is malformed, empty or repeated.',
    'invalid',
  ),
  idempotencyKeyReused: entry(
    40007,
    'A plant with this id was created with the same Idempotency-Key but different content.',
    'taken',
  ),
  invalidRequest: entry(40008, 'The request is invalid; the message says why.', undefined),
  missingCredentials: entry(
    40100,
    'No bearer token: the Authorization header is missing or has another scheme.',
    undefined,
    // RFC 6750 section 3: no error code if the request has no credentials.
    { 'WWW-Authenticate': CHALLENGE },
  ),
  invalidToken: entry(
    40101,
    'Invalid bearer token: malformed, unknown or expired, or more than one Authorization header.',
    undefined,
    { 'WWW-Authenticate': `${CHALLENGE}, error="invalid_token"` },
  ),
  forbidden: entry(
    40300,
    'The caller is not allowed to do this; for example, the token lacks a scope.',
    undefined,
  ),
  notFound: entry(40400, 'There is nothing at this path.', undefined),
  methodNotAllowed: entry(
    40500,
    'The path does not support this method; the Allow header lists those it supports.',
    undefined,
  ),
  requestTimeout: entry(40800, 'The request was not received completely in time.', undefined),
  expectationFailed: entry(41700, 'The Expect header must be 100-continue.', undefined),
  tooManyRequests: entry(
    42900,
    'Too many requests; the Retry-After header says how long to wait.',
    undefined,
  ),
  headersTooLarge: entry(43100, 'The request line and headers are too large.', undefined),
  internal: entry(50000, 'Unexpected error. The server log shows the cause.', 'unknown'),
  unavailable: entry(
    50300,
    "Nothing was stored: the service is overloaded or shutting down, or the store or the issuer's keys are unavailable. Retry after the delay in Retry-After.",
    'unavailable',
    { 'Retry-After': '1' },
  ),
  outcomeUnknown: entry(
    50400,
    'The database did not confirm the commit: the plant may or may not be stored. Retry with the same Idempotency-Key.',
    'unknown',
  ),
} as const;

/** The name of an error in the catalogue. */
export type ErrorKind = keyof typeof errorCatalogue;

/** The Error body of the contract. */
export interface ErrorBody {
  readonly error: number;
  readonly message: string;
}

interface PlantStoreErrorOptions extends HttpExceptionOptions {
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /**
   * The HTTP status, if it is not that of the kind. The number of the error is then this status and `00`.
   * @default the status of the kind
   */
  readonly status?: number | undefined;
  /** @default the outcome of the kind */
  readonly outcome?: RequestOutcome | undefined;
}

/**
 * The base of all errors that this package throws on purpose: a Nest `HttpException` whose response is the
 * Error body, so that a host without our filter still sends the right response.
 */
export class PlantStoreError extends HttpException {
  /** Headers of the response, for example `Retry-After`. */
  readonly headers: Readonly<Record<string, string>>;
  /** See {@link CatalogueEntry.outcome}. */
  readonly outcome: RequestOutcome | undefined;

  /** @param message by default, the meaning of the kind */
  constructor(kind: ErrorKind, message?: string, options: PlantStoreErrorOptions = {}) {
    const known = errorCatalogue[kind];
    const status = options.status ?? known.status;
    const error = status === known.status ? known.error : status * 100;
    super({ error, message: message ?? known.meaning } satisfies ErrorBody, status, options);
    this.headers = { ...known.headers, ...options.headers };
    this.outcome = options.outcome ?? known.outcome;
  }

  /** The stable number, {@link CatalogueEntry.error}. */
  get error(): number {
    return this.body.error;
  }

  /** The body of the response. */
  get body(): ErrorBody {
    return this.getResponse() as ErrorBody;
  }
}

/** Creates a base class whose default message comes from the catalogue. */
function createErrorClass(kind: ErrorKind): new (message?: string) => PlantStoreError {
  return class extends PlantStoreError {
    constructor(message?: string) {
      super(kind, message);
    }
  };
}

/** 40002: the value is not a NewPlant. The message names each invalid property and the reason. */
export class InvalidPlantError extends createErrorClass('invalidPlant') {}

/** 40003: a plant with this id already exists. The error reveals nothing about the stored plant. */
export class IdTakenError extends createErrorClass('idTaken') {}

/** 40006: the idempotency key is malformed, empty or repeated. */
export class InvalidIdempotencyKeyError extends createErrorClass('invalidIdempotencyKey') {}

/** 40007: the same caller created a plant with this id and idempotency key, but with other content. */
export class IdempotencyKeyReusedError extends createErrorClass('idempotencyKeyReused') {}

/** 50300: rejected before anything was stored. The client may retry. */
export class UnavailableError extends PlantStoreError {
  /** @param options.retryAfter in seconds; by default, the delay of the catalogue */
  constructor({ cause, retryAfter }: { cause?: unknown; retryAfter?: number } = {}) {
    const headers = retryAfter === undefined ? undefined : { 'Retry-After': String(retryAfter) };
    super('unavailable', undefined, { cause, headers });
  }
}

/** 50400: the database did not confirm the commit; the plant may or may not be stored. */
export class OutcomeUnknownError extends PlantStoreError {
  constructor(options: { cause?: unknown } = {}) {
    super('outcomeUnknown', undefined, options);
  }
}

// Internal errors, not exported to hosts.

/** 40000: the HTTP request is malformed. */
export class MalformedRequestError extends createErrorClass('malformedRequest') {}

/** 40001: the body is not JSON. */
export class NotJsonError extends createErrorClass('notJson') {}

/** 40101: the request has credentials, but they are not one valid bearer token. */
export class InvalidTokenError extends createErrorClass('invalidToken') {}

/** A token names a key that its issuer may have published since its keys were fetched. */
export class UnknownKeyError extends UnavailableError {
  /** Not counted as a create request that was rejected: anybody can send such a token, and would trigger an alert. */
  override readonly outcome = undefined;

  constructor(retryAfter: number) {
    super({ cause: 'The token names an unknown key.', retryAfter });
  }
}

/** 40005: the body is larger than the limit. */
export class BodyTooLargeError extends PlantStoreError {
  /** @param limit the limit in bytes */
  constructor(limit: number) {
    super('bodyTooLarge', `The body is larger than the limit of ${limit} bytes.`);
  }
}

/** 40300: the token is valid but lacks the required scope, RFC 6750 section 3.1. */
export class InsufficientScopeError extends PlantStoreError {
  /** @param scope the required scope tokens, RFC 6749 section 3.3, separated by spaces */
  constructor(scope: string) {
    const challenge = `${CHALLENGE}, error="insufficient_scope", scope="${scope}"`;
    super('forbidden', undefined, { headers: { 'WWW-Authenticate': challenge } });
  }
}

import { channel } from 'node:diagnostics_channel';
import type { IncomingMessage } from 'node:http';
import { HttpException, type HttpExceptionOptions } from '@nestjs/common';

export interface CatalogueEntry {
  /** Stable number, an int32. */
  readonly error: number;
  /** HTTP status code, RFC 9110 section 15: the first three digits of the number. */
  readonly status: number;
  /** When the error occurs, as a sentence. */
  readonly meaning: string;
  /** What became of a creation that is answered with it; undefined for what refuses any request. */
  readonly outcome: Outcome | undefined;
}

/**
 * What became of a creation that failed: its content was `invalid`, its id is `taken`, it was `refused`
 * before anything was stored, or it is `unknown` whether it is stored.
 */
export type Outcome = 'invalid' | 'taken' | 'refused' | 'unknown';

function entry(error: number, meaning: string, outcome?: Outcome): CatalogueEntry {
  return { error, status: Math.floor(error / 100), meaning, outcome };
}

/**
 * Every error the service can answer with. A number never gets a second meaning. The filter, the raw
 * socket answers, the OpenAPI document and docs/errors.md come from it or are tested against it.
 */
export const errorCatalogue = {
  malformedRequest: entry(
    40000,
    'The HTTP request is malformed: its request line, headers or framing.',
  ),
  notJson: entry(40001, 'The body is not JSON: invalid syntax, not UTF-8, or empty.', 'invalid'),
  invalidPlant: entry(
    40002,
    'The body is JSON but not a NewPlant; the message says what is wrong with each field.',
    'invalid',
  ),
  idTaken: entry(40003, 'A plant with this id exists already.', 'taken'),
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
  missingCredentials: entry(
    40100,
    'No bearer token: the Authorization header is missing or has another scheme.',
  ),
  invalidToken: entry(
    40101,
    'Invalid bearer token: malformed, unknown or expired, or more than one Authorization header.',
  ),
  forbidden: entry(
    40300,
    'The caller is not allowed to do this; for example, the token lacks a scope.',
  ),
  notFound: entry(40400, 'There is nothing at this path.'),
  methodNotAllowed: entry(
    40500,
    'The path does not support this method; the Allow header lists those it supports.',
  ),
  requestTimeout: entry(40800, 'The request was not received completely in time.'),
  expectationFailed: entry(41700, 'The Expect header must be 100-continue.'),
  tooManyRequests: entry(42900, 'Too many requests; the Retry-After header says how long to wait.'),
  headersTooLarge: entry(43100, 'The request line and headers are too large.'),
  internal: entry(50000, "Unexpected error; the server's log has the cause.", 'unknown'),
  notImplemented: entry(50100, 'The server does not support this method or transfer coding.'),
  unavailable: entry(
    50300,
    "This request stored nothing: the service is overloaded or shutting down, or the store or the issuer's keys are unavailable. Send it again after Retry-After.",
    'refused',
  ),
  outcomeUnknown: entry(
    50400,
    'The database did not confirm the commit: the plant may or may not be stored. Send the request again with the same Idempotency-Key.',
    'unknown',
  ),
} as const;

export type ErrorKind = keyof typeof errorCatalogue;

/** The Error body of the contract. */
export interface ErrorBody {
  readonly error: number;
  readonly message: string;
}

/**
 * The base of all errors this package throws on purpose: a Nest `HttpException` whose response is the
 * Error body, so that a host without our filter answers it correctly too.
 */
export class PlantStoreError extends HttpException {
  /** Header fields that the answer carries beside the body, for example `Retry-After`. */
  readonly headers: Readonly<Record<string, string>>;
  /** {@link CatalogueEntry.outcome} */
  readonly outcome: Outcome | undefined;

  constructor(
    kind: ErrorKind,
    message: string = errorCatalogue[kind].meaning,
    {
      headers = {},
      ...options
    }: HttpExceptionOptions & { headers?: Readonly<Record<string, string>> } = {},
  ) {
    const { error, status, outcome } = errorCatalogue[kind];
    super({ error, message } satisfies ErrorBody, status, options);
    this.headers = headers;
    this.outcome = outcome;
  }

  /** The stable number, {@link CatalogueEntry.error}. */
  get error(): number {
    return this.body.error;
  }

  /** The answer's body. */
  get body(): ErrorBody {
    return this.getResponse() as ErrorBody;
  }
}

/** The base of an error whose message is that of the catalogue unless told otherwise. */
function errorOf(
  kind: ErrorKind,
  headers: Readonly<Record<string, string>> = {},
): new (message?: string) => PlantStoreError {
  return class extends PlantStoreError {
    constructor(message?: string) {
      super(kind, message, { headers });
    }
  };
}

/** 40000: the HTTP request itself is malformed. */
export class MalformedRequestError extends errorOf('malformedRequest') {}

/** 40001: the body is not JSON. */
export class NotJsonError extends errorOf('notJson') {}

/** 40002: the value is not a NewPlant. The message names each field at fault and why. */
export class InvalidPlantError extends errorOf('invalidPlant') {}

/** 40003: the id is taken. It reveals nothing about the stored plant. */
export class IdTakenError extends errorOf('idTaken') {}

/** 40004: the body's media type or content encoding is not supported. */
export class UnsupportedMediaTypeError extends errorOf('unsupportedMediaType') {}

/** 40005: the body is larger than the limit, which the message says. */
export class BodyTooLargeError extends PlantStoreError {
  /** @param limit bytes */
  constructor(limit: number) {
    super('bodyTooLarge', `The body is larger than the limit of ${limit} bytes.`);
  }
}

/** 40006: the idempotency key is malformed, empty or repeated. */
export class InvalidIdempotencyKeyError extends errorOf('invalidIdempotencyKey') {}

/** 40007: the same caller created a plant with this id and idempotency key, but with other content. */
export class IdempotencyKeyReusedError extends errorOf('idempotencyKeyReused') {}

/** 40100: no bearer token. The challenge has no error code, RFC 6750 section 3. */
export class MissingCredentialsError extends errorOf('missingCredentials', {
  'WWW-Authenticate': 'Bearer realm="plants"',
}) {}

/** 40101: the bearer token is invalid, RFC 6750 section 3.1. */
export class InvalidTokenError extends errorOf('invalidToken', {
  'WWW-Authenticate': 'Bearer realm="plants", error="invalid_token"',
}) {}

/** 40300: the token is valid but lacks the required scope, RFC 6750 section 3.1. */
export class InsufficientScopeError extends PlantStoreError {
  /**
   * @param scope the required scope, RFC 6749 section 3.3
   * @param caller whose token it is, for logs
   */
  constructor(
    scope: string,
    readonly caller?: { readonly name: string; readonly issuer?: string },
  ) {
    super('forbidden', undefined, {
      headers: {
        'WWW-Authenticate': `Bearer realm="plants", error="insufficient_scope", scope="${scope}"`,
      },
    });
  }
}

/** 40400: there is nothing at this path. */
export class NotFoundError extends errorOf('notFound') {}

/** 40500: the path does not support this method, RFC 9110 section 15.5.6. */
export class MethodNotAllowedError extends PlantStoreError {
  /** @param allowed the methods that the path supports */
  constructor(allowed: readonly string[]) {
    super('methodNotAllowed', undefined, { headers: { Allow: allowed.join(', ') } });
  }
}

/** 42900: the caller has used up its quota, RFC 6585 section 4. */
export class TooManyRequestsError extends PlantStoreError {
  /** @param retryAfter seconds */
  constructor(retryAfter: number) {
    super('tooManyRequests', undefined, { headers: { 'Retry-After': String(retryAfter) } });
  }
}

/** 50100: the server does not support the method or the transfer coding. */
export class NotImplementedError extends errorOf('notImplemented') {}

/** 50300: refused before anything was stored. The client may repeat the request. */
export class UnavailableError extends PlantStoreError {
  constructor(options: { cause?: unknown } = {}) {
    super('unavailable', undefined, { ...options, headers: { 'Retry-After': '1' } });
  }
}

/** 50400: the database did not confirm the commit; the plant may or may not be stored. */
export class OutcomeUnknownError extends PlantStoreError {
  constructor(options: { cause?: unknown } = {}) {
    super('outcomeUnknown', undefined, options);
  }
}

/** An error has been answered. */
export interface ErrorEvent {
  readonly error: PlantStoreError;
  /** The request that it answers; undefined for one that Node's HTTP parser refused. */
  readonly request: IncomingMessage | undefined;
}

/** Node's diagnostics channel of the errors answered; its messages are {@link ErrorEvent}s. */
export const errorChannel = channel('plant-store:error');

/**
 * Node's diagnostics channel of the requests answered with 5xx, while their line is logged; its
 * messages are the requests. Bind a store to it to know the request of the line.
 */
export const failureChannel = channel('plant-store:failure');

import { randomBytes } from 'node:crypto';
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import { PlantStoreError } from '../errors';
import { FailureLog } from '../http';
import { isCreation } from '../plants';
import type { BodyMemory } from './body-memory';
import type { Connections } from './node/connections';
import { continueOnceRead } from './node/continue';
import { refuse } from './refusal';
import { findHeadFault, membersOf, normalizeTarget } from './request-rules';

/** What the program decides about creations before their bodies are read. */
export interface Admission {
  /** @throws PlantStoreError when the service takes no creation now */
  readonly admit: (response: ServerResponse) => void;
  /**
   * Called before a client that waits for `100 Continue` is asked for the body, RFC 9110 section
   * 10.1.1.
   *
   * @throws PlantStoreError when the request must be refused
   */
  readonly authenticate: (request: IncomingMessage) => unknown;
}

interface ListenerOptions {
  readonly connections: Connections;
  readonly bodies: BodyMemory;
  readonly idOf: (request: IncomingMessage) => string;
  readonly corsOrigins: readonly string[];
  /** Undefined until the application is complete. */
  readonly admission: () => Admission | undefined;
}

/**
 * Handles the requests of a server, in whichever event Node emits them. The rules of a request's head
 * apply here, once and to all, before any router or hook sees the request.
 *
 * @param handle gets the requests that keep them, with a target in origin form
 */
export function listenForRequests(
  server: Server,
  { connections, bodies, idOf, corsOrigins, admission }: ListenerOptions,
  handle: RequestListener,
): void {
  /** @throws PlantStoreError when the request must be refused */
  const check = (request: IncomingMessage, response: ServerResponse): void => {
    const fault = findHeadFault(request);
    if (fault) throw fault;
    request.url = normalizeTarget(request);
    if (isCreation(request)) admission()?.admit(response);
    bodies.reserve(request, response);
  };
  /** Returns what {@link Admission.authenticate} does. */
  const checkExpectation = (request: IncomingMessage): unknown => {
    if (membersOf(request.headers.expect).some((each) => each !== '100-continue')) {
      throw new PlantStoreError('expectationFailed');
    }
    return isCreation(request) ? admission()?.authenticate(request) : undefined;
  };
  const failures = new FailureLog();
  const fail = (request: IncomingMessage, response: ServerResponse, cause: unknown): void => {
    const error =
      cause instanceof PlantStoreError
        ? cause
        : new PlantStoreError('internal', undefined, { cause });
    const id = idOf(request);
    const status = error.getStatus();
    if (status === 500 || status === 503) failures.write(error, { id, raw: request });
    // The bytes behind a fault are uncertain, and a client that waits for 100 Continue may or may not
    // send its body now. After 503 the same request may come again.
    if (status !== 503 || request.headers.expect !== undefined) response.shouldKeepAlive = false;
    refuse(request, response, error, id, corsOrigins);
  };

  const receive = (expects: boolean) => (request: IncomingMessage, response: ServerResponse) => {
    if (!connections.admit(request, response)) return;
    const proceed = (): void => {
      handle(request, response);
      if (expects && membersOf(request.headers.expect).length > 0) {
        continueOnceRead(request, response);
      }
    };
    let authentication: unknown;
    try {
      check(request, response);
      if (expects) authentication = checkExpectation(request);
    } catch (error) {
      fail(request, response, error);
      return;
    }
    if (authentication instanceof Promise) {
      // Whether the answer closes the connection must be known before the next request is parsed.
      response.shouldKeepAlive = false;
      authentication.then(proceed, (error: unknown) => {
        fail(request, response, error);
      });
    } else {
      proceed();
    }
  };
  server.on('request', receive(false));
  server.on('checkContinue', receive(true)).on('checkExpectation', receive(true));
}

/** A request id that a client may choose: harmless in a log and on a terminal. */
const REQUEST_ID = /^[\w.:/+=@-]{1,128}$/;

/**
 * Creates the Fastify option `genReqId`: it takes a well-formed `X-Request-Id` from the request, or
 * makes an id that is unique across processes.
 */
export function requestIds(): (request: Pick<IncomingMessage, 'headers'>) => string {
  const prefix = randomBytes(9).toString('base64url');
  let count = 0;
  return ({ headers }) => {
    const given = headers['x-request-id'];
    if (typeof given === 'string' && REQUEST_ID.test(given)) return given;
    return `${prefix}-${(++count).toString(36)}`;
  };
}

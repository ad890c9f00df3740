import { randomBytes } from 'node:crypto';
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import { PlantStoreError } from '../plants';
import { BodyTooLargeError, FailureLog } from '../plants/program';
import { BodyMemory } from './body-memory';
import type { Connections } from './connections';
import { isCreation } from './creation';
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
  readonly authenticate: (request: IncomingMessage) => Promise<unknown>;
}

/**
 * Applies the rules of a request's head, once and to all, before any router or hook sees the request:
 * it checks each request, and refuses it or hands it on.
 */
export class HeadRules {
  /** What decides about creations, once the application is complete. */
  admission: Admission | undefined;
  /** The Fastify option `genReqId`. */
  readonly idOf = requestIds();
  private readonly bodies: BodyMemory;
  private readonly failures = new FailureLog();

  /**
   * @param bodyLimit bytes
   * @param corsOrigins whose pages may read refusals
   */
  constructor(
    private readonly bodyLimit: number,
    private readonly corsOrigins: readonly string[],
  ) {
    this.bodies = new BodyMemory(bodyLimit);
  }

  /**
   * Handles the requests of a server, in whichever event Node emits them.
   *
   * @param handle gets the requests that keep the rules, with a target in origin form
   */
  listen(server: Server, connections: Connections, handle: RequestListener): void {
    server.on('request', (request, response) => {
      connections.take(request, response, () => {
        if (this.keepsRules(request, response)) handle(request, response);
      });
    });
    const receiveExpecting: RequestListener = (request, response) => {
      connections.take(request, response, () => {
        if (!this.keepsRules(request, response)) return;
        this.meetExpectation(request, response).then(
          () => {
            handle(request, response);
          },
          (error: unknown) => {
            this.refuse(request, response, error);
          },
        );
      });
    };
    server.on('checkContinue', receiveExpecting).on('checkExpectation', receiveExpecting);
  }

  /** Refuses a request that breaks a rule. */
  private keepsRules(request: IncomingMessage, response: ServerResponse): boolean {
    try {
      this.check(request, response);
      return true;
    } catch (error) {
      this.refuse(request, response, error);
      return false;
    }
  }

  /** @throws PlantStoreError when the request must be refused */
  private check(request: IncomingMessage, response: ServerResponse): void {
    const fault = findHeadFault(request);
    if (fault) throw fault;
    request.url = normalizeTarget(request);
    if (isCreation(request)) {
      if (Number(request.headers['content-length'] ?? 0) > this.bodyLimit) {
        throw new BodyTooLargeError(this.bodyLimit);
      }
      this.admission?.admit(response);
    }
    this.bodies.reserve(request, response);
  }

  /** @throws PlantStoreError when the request must be refused */
  private async meetExpectation(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const expectations = membersOf(request.headers.expect);
    if (expectations.length === 0) return;
    if (expectations.some((each) => each !== '100-continue')) {
      throw new PlantStoreError('expectationFailed');
    }
    if (isCreation(request)) {
      await this.admission?.authenticate(request);
      response.writeContinue();
    } else {
      // Nothing else needs a body. The client may or may not send its own behind the answer.
      response.setHeader('Connection', 'close');
    }
  }

  private refuse(request: IncomingMessage, response: ServerResponse, cause: unknown): void {
    const error =
      cause instanceof PlantStoreError
        ? cause
        : new PlantStoreError('internal', undefined, { cause });
    const id = this.idOf(request);
    const status = error.getStatus();
    if (status === 500 || status === 503) this.failures.write(error, { id, raw: request });
    // The bytes behind a fault are uncertain, and a client that waits for 100 Continue may or may not
    // send its body now. After 503 the same request may come again.
    if (status !== 503 || request.headers.expect !== undefined) {
      response.setHeader('Connection', 'close');
    }
    refuse(request, response, error, id, this.corsOrigins);
  }
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

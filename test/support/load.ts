import { connect } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import type { Plant } from '../../src/plants';
import { errorNumbers } from './error-bodies';
import { TOKEN } from './application';
import type { ServiceProcess } from './service-process';

/** A create request and its outcome. */
export interface CreateRequest {
  readonly id: number;
  /** Requests with the same id have different names, so that the stored name shows which one was stored. */
  readonly name: string;
  /** 200, or the number of the error. Undefined: no response. */
  outcome?: number;
  /** When the response was received, in milliseconds since the epoch. */
  respondedAt?: number;
}

/** A request, and its bytes as latin1. */
type Request = Pick<CreateRequest, 'id' | 'name'> & { readonly text: string };

interface LoadOptions {
  /** The addresses of the instances. Each connection uses one of them. */
  readonly urls: readonly URL[];
  readonly connections: number;
  /** Returns the next request of the connection with this number. Undefined ends the connection. */
  readonly next: (connection: number) => Request | undefined;
  /** Milliseconds to wait before the next request after a 503 response. */
  readonly backOffMs?: number;
  /** Milliseconds to wait before the next request after any other response. */
  readonly pauseMs?: number;
  /** Whether to reconnect after a connection has closed. */
  readonly shouldReconnect?: boolean;
  /** The list that the create requests are added to. Several loads may share it. */
  readonly creations?: CreateRequest[];
}

export function createRequest(id: number, name = 'Fern'): Request {
  const body = `{"id":${id},"name":"${name}"}`;
  const headers = `POST /plants HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKEN}\r\nContent-Type: application/json\r\n`;
  return { id, name, text: `${headers}Content-Length: ${body.length}\r\n\r\n${body}` };
}

/** Sends create requests over several sockets, with one request at a time on each. */
export class Load {
  readonly creations: CreateRequest[];
  /** Resolves when all connections have ended. */
  readonly done: Promise<unknown>;
  private isStopped = false;

  constructor(private readonly options: LoadOptions) {
    this.creations = options.creations ?? [];
    const numbers = [...Array(options.connections).keys()];
    this.done = Promise.all(numbers.map((number) => this.runConnection(number)));
  }

  /** Runs a load until it ends by itself. */
  static async run(options: LoadOptions): Promise<Load> {
    const load = new Load(options);
    await load.done;
    return load;
  }

  /**
   * Starts clients that send requests until they are stopped. In every third request, all of them use the same id.
   *
   * @param round part of the ids and names: loads on the same store have different ones
   * @param pause milliseconds between the requests of a client
   */
  static startCompeting(
    urls: readonly URL[],
    connections: number,
    { round = 0, pause = 0 } = {},
  ): Load {
    const counts = Array<number>(connections).fill(0);
    const next = (connection: number): Request => {
      const count = (counts[connection] ?? 0) + 1;
      counts[connection] = count;
      const id = round * 1e9 + (count % 3 === 0 ? count : 1e6 * (connection + 1) + count);
      return createRequest(id, `${round}-${connection}-${count}`);
    };
    const options = { backOffMs: 10, pauseMs: pause, shouldReconnect: true };
    return new Load({ urls, connections, next, ...options });
  }

  async stop(): Promise<void> {
    this.isStopped = true;
    await this.done;
  }

  /** Returns the create requests with this outcome. */
  withOutcome(outcome: number): CreateRequest[] {
    return this.creations.filter((each) => each.outcome === outcome);
  }

  /** The number of create requests, by outcome. */
  get counts(): Record<string, number> {
    const counts: Record<string, number> = {};
    for (const { outcome } of this.creations) {
      counts[`${outcome}`] = (counts[`${outcome}`] ?? 0) + 1;
    }
    return counts;
  }

  /** Whether a plant was acknowledged after a time, in milliseconds since the epoch. */
  hasSucceededSince(time: number): boolean {
    return this.withOutcome(200).some(({ respondedAt = 0 }) => respondedAt > time);
  }

  private async runConnection(connection: number): Promise<void> {
    const { urls, shouldReconnect = false } = this.options;
    const url = urls[connection % urls.length];
    if (url === undefined) throw new Error('no URL');
    do await this.sendRequests(url, connection);
    while (shouldReconnect && !this.isStopped && (await setTimeout(10, true)));
  }

  /** Sends requests on one connection until the connection ends. */
  private async sendRequests(url: URL, connection: number): Promise<void> {
    const { next, backOffMs = 0, pauseMs = 0 } = this.options;
    const socket = connect(Number(url.port), url.hostname).setNoDelay();
    let current: CreateRequest | undefined;
    let received = '';

    const send = (): void => {
      const request = this.isStopped ? undefined : next(connection);
      if (request === undefined) {
        socket.end();
        return;
      }
      const { id, name, text } = request;
      current = { id, name };
      this.creations.push(current);
      socket.write(text, 'latin1');
    };

    socket.on('connect', send);
    socket.on('data', (chunk) => {
      received += chunk.toString('latin1');
      const headersEnd = received.indexOf('\r\n\r\n');
      if (headersEnd < 0 || current === undefined) return;
      const end = headersEnd + 4 + Number(/content-length: (\d+)/i.exec(received)?.[1] ?? 0);
      if (received.length < end) return;
      const status = Number(received.slice(9, 12));
      const body = received.slice(headersEnd + 4, end);
      const isClosing = /connection: close/i.test(received);
      received = '';
      current.outcome = status === 200 ? 200 : Number(/"error":(\d+)/.exec(body)?.[1]);
      current.respondedAt = Date.now();
      current = undefined;
      if (isClosing) socket.end();
      else {
        const waitMs = status === 503 ? backOffMs : pauseMs;
        if (waitMs > 0) void setTimeout(waitMs).then(send);
        else send();
      }
    });
    socket.on('error', () => undefined);
    await new Promise((resolve) => socket.once('close', resolve));
  }
}

/**
 * Sends create requests to a service until the condition is true or the service has ended, and adds them to the
 * list. Their ids are their places in the list.
 */
export async function createUntil(
  isDone: () => boolean,
  service: ServiceProcess,
  creations: CreateRequest[],
  { connections = 4, name = 'Fern' } = {},
): Promise<void> {
  let hasEnded = false;
  void service.ended.then(() => {
    hasEnded = true;
  });
  const next = () => (isDone() || hasEnded ? undefined : createRequest(creations.length + 1, name));
  await Load.run({ urls: [await service.url()], connections, backOffMs: 20, next, creations });
}

/** Sends this number of create requests, as {@link createUntil} does. */
export function createMany(
  count: number,
  service: ServiceProcess,
  creations: CreateRequest[],
  options?: { connections?: number; name?: string },
): Promise<void> {
  const end = creations.length + count;
  return createUntil(() => creations.length >= end, service, creations, options);
}

/**
 * Checks that every acknowledged plant is stored, that no rejected one is, and that at most one request per id
 * was acknowledged.
 */
export function expectOutcomesMatch(
  creations: readonly CreateRequest[],
  stored: readonly Plant[],
): void {
  const names = new Map(stored.map(({ id, name }) => [Number(id), name]));
  const isStored = ({ id, name }: CreateRequest): boolean => names.get(id) === name;
  const acknowledged = creations.filter(({ outcome }) => outcome === 200);
  const rejected = creations.filter(
    ({ outcome = errorNumbers.outcomeUnknown }) =>
      ![200, errorNumbers.outcomeUnknown].includes(outcome),
  );
  const lastOfId = new Map(acknowledged.map((each) => [each.id, each]));
  expect({
    lost: acknowledged.filter((each) => !isStored(each)),
    rejectedButStored: rejected.filter(isStored),
    acknowledgedTwice: acknowledged.filter((each) => lastOfId.get(each.id) !== each),
  }).toEqual({ lost: [], rejectedButStored: [], acknowledgedTwice: [] });
}

import { connect } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import type { Plant } from '../../src/plants';
import { errorNumbers } from './error-bodies';
import { TOKEN } from './application';

/** A creation, and what its caller was told. */
export interface Creation {
  readonly id: number;
  /** Where several want one id, no two have the same name: a stored plant tells whose it is. */
  readonly name: string;
  /** 200, or the number of the error; undefined without an answer. */
  outcome?: number;
  /** When the answer came, in milliseconds since the epoch. */
  answeredAt?: number;
}

interface Request extends Pick<Creation, 'id' | 'name'> {
  /** What goes over the wire, a byte a character. */
  readonly text: string;
}

interface LoadOptions {
  /** Where the instances listen. Each connection sticks to one. */
  readonly urls: readonly URL[];
  readonly connections: number;
  /** The next request of a connection, by its number; undefined ends it. */
  readonly next: (connection: number) => Request | undefined;
  readonly onAnswer?: (creation: Creation, status: number, body: string) => unknown;
  /** Milliseconds to wait before the next request after an answer of 503. */
  readonly backOff?: number;
  /** Milliseconds to wait before the next request after any other answer. */
  readonly pause?: number;
  /** Whether a connection that is lost is opened again. */
  readonly isReopened?: boolean;
  /** Where the creations are noted; they may be those of several loads. */
  readonly creations?: Creation[];
}

export function creation(id: number, name = 'Fern'): Request {
  const body = `{"id":${id},"name":"${name}"}`;
  const head = `POST /plants HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKEN}\r\nContent-Type: application/json\r\n`;
  return { id, name, text: `${head}Content-Length: ${body.length}\r\n\r\n${body}` };
}

/** A load on the service over raw sockets, each with one request at a time. */
export class Load {
  readonly creations: Creation[];
  /** Once all connections have ended. */
  readonly done: Promise<unknown>;
  private isStopped = false;

  constructor(private readonly options: LoadOptions) {
    this.creations = options.creations ?? [];
    const connections = Array.from({ length: options.connections }, (_, at) => this.drive(at));
    this.done = Promise.all(connections);
  }

  /** Puts a load that ends by itself. */
  static async put(options: LoadOptions): Promise<Load> {
    const load = new Load(options);
    await load.done;
    return load;
  }

  /**
   * Clients that compete until they are stopped: every third id is one that all want.
   *
   * @param pause milliseconds between the requests of a client, so that the load leaves time for others
   */
  static compete(urls: readonly URL[], connections: number, { round = 0, pause = 0 } = {}): Load {
    const counts = Array<number>(connections).fill(0);
    const next = (connection: number): Request => {
      const count = (counts[connection] ?? 0) + 1;
      counts[connection] = count;
      const id = round * 1e9 + (count % 3 === 0 ? count : 1e6 * (connection + 1) + count);
      return creation(id, `${round}-${connection}-${count}`);
    };
    return new Load({ urls, connections, next, backOff: 10, pause, isReopened: true });
  }

  async stop(): Promise<void> {
    this.isStopped = true;
    await this.done;
  }

  /** The creations with an outcome. */
  withOutcome(outcome: number): Creation[] {
    return this.creations.filter((each) => each.outcome === outcome);
  }

  /** How many creations there are, by outcome. */
  get counts(): Record<string, number> {
    const groups = Object.groupBy(this.creations, ({ outcome }) => String(outcome));
    return Object.fromEntries(
      Object.entries(groups).map(([key, group = []]) => [key, group.length]),
    );
  }

  /** Whether anything was acknowledged since a time, in milliseconds since the epoch. */
  hasSucceededSince(time: number): boolean {
    return this.withOutcome(200).some(({ answeredAt = 0 }) => answeredAt > time);
  }

  private async drive(at: number): Promise<void> {
    const { urls, isReopened = false } = this.options;
    const url = urls[at % urls.length];
    if (url === undefined) throw new Error('no URL');
    do await this.talk(url, at);
    while (isReopened && !this.isStopped && (await setTimeout(10, true)));
  }

  /** Sends requests on one connection until it ends. */
  private async talk(url: URL, at: number): Promise<void> {
    const { next, onAnswer, backOff = 0, pause = 0 } = this.options;
    const socket = connect(Number(url.port), url.hostname).setNoDelay();
    let current: Creation | undefined;
    let received = '';

    const send = (): void => {
      const request = this.isStopped ? undefined : next(at);
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
      const headEnd = received.indexOf('\r\n\r\n');
      if (headEnd < 0 || current === undefined) return;
      const end = headEnd + 4 + Number(/content-length: (\d+)/i.exec(received)?.[1] ?? 0);
      if (received.length < end) return;
      const status = Number(received.slice(9, 12));
      const body = received.slice(headEnd + 4, end);
      const closes = /connection: close/i.test(received);
      received = '';
      const answered = current;
      current = undefined;
      answered.outcome = status === 200 ? 200 : Number(/"error":(\d+)/.exec(body)?.[1]);
      answered.answeredAt = Date.now();
      onAnswer?.(answered, status, body);
      if (closes) socket.end();
      else {
        const wait = status === 503 ? backOff : pause;
        if (wait > 0) void setTimeout(wait).then(send);
        else send();
      }
    });
    socket.on('error', () => undefined);
    await new Promise((resolve) => socket.once('close', resolve));
  }
}

/** Holds what callers were told against what is stored in the end. */
export function expectKept(creations: readonly Creation[], stored: readonly Plant[]): void {
  const names = new Map(stored.map(({ id, name }) => [Number(id), name]));
  const isStored = ({ id, name }: Creation): boolean => names.get(id) === name;
  const acknowledged = creations.filter(({ outcome }) => outcome === 200);
  const refused = creations.filter(
    ({ outcome = errorNumbers.outcomeUnknown }) =>
      ![200, errorNumbers.outcomeUnknown].includes(outcome),
  );
  const lastOfId = new Map(acknowledged.map((each) => [each.id, each]));
  expect({
    lost: acknowledged.filter((each) => !isStored(each)),
    refusedButStored: refused.filter(isStored),
    acknowledgedTwice: acknowledged.filter((each) => lastOfId.get(each.id) !== each),
  }).toEqual({ lost: [], refusedButStored: [], acknowledgedTwice: [] });
}

import { setTimeout as sleep } from 'node:timers/promises';
import { withTimeout } from './with-timeout';

/**
 * Milliseconds until a statement without an answer is abandoned and its session closed. TCP alone
 * would take a quarter of an hour to notice a dead server. The statement is not cancelled.
 */
const STATEMENT_TIMEOUT = 30_000;

/** Milliseconds after which a statement without an answer is late, and between two looks then. */
const LATE = 1000;

/** Milliseconds after which a statement is overdue: the host may answer others, but commits nothing. */
const OVERDUE = 5000;

/** Milliseconds for which a host may be silent while a statement waits for it. */
const LONGEST_SILENCE = 3000;

/** A statement was abandoned, because another session or host is in use now. */
export class AbandonedError extends Error {
  override readonly name = 'AbandonedError';

  constructor() {
    super('the host stopped answering, and the statement was abandoned');
  }
}

/** The options of a {@link StatementWatch}. */
export interface StatementWatchOptions {
  /** How often the host in use has changed. */
  readonly election: () => number;
  /** When the host in use last answered a look, on the clock of `performance.now()`. */
  readonly heardAt: () => number;
  /** Called every second while a statement is late, and told if it is overdue. Never rejects. */
  readonly look: (isOverdue: boolean) => Promise<void>;
  /** Called while a statement waits for a host that has been silent for too long. */
  readonly onSilence: () => void;
}

interface WaitingStatement {
  readonly since: number;
  readonly election: number;
  readonly abandonment: AbortController;
  /** Whether its host stopped answering. The connection may be lost even if the host is back. */
  isSuspect: boolean;
}

/**
 * Waits for statements, and notices when their host stops answering although no connection is reset,
 * because packets are lost. A host that answers other statements is only slow, and its statements may
 * wait.
 */
export class StatementWatch {
  /** In the order in which they began. */
  private readonly waiting = new Set<WaitingStatement>();
  private answeredAt = 0;
  private isWatching = false;

  constructor(private readonly options: StatementWatchOptions) {}

  /**
   * Waits for the answer to a statement.
   *
   * @throws AbandonedError when the statement was abandoned
   * @throws TimeoutError when there is no answer within 30 s
   */
  async answerTo<T>(statement: Promise<T>): Promise<T> {
    const waiting: WaitingStatement = {
      since: performance.now(),
      election: this.options.election(),
      abandonment: new AbortController(),
      isSuspect: false,
    };
    this.waiting.add(waiting);
    const late = setTimeout(() => void this.watch(), LATE).unref();
    try {
      const answer = await withTimeout(statement, STATEMENT_TIMEOUT, waiting.abandonment.signal);
      this.answeredAt = performance.now();
      return answer;
    } catch (error) {
      throw waiting.abandonment.signal.aborted ? new AbandonedError() : error;
    } finally {
      clearTimeout(late);
      this.waiting.delete(waiting);
    }
  }

  /** Abandons the statements of a host that is no longer in use, or that had stopped answering. */
  abandonLost(): void {
    const election = this.options.election();
    for (const statement of this.waiting) {
      if (statement.isSuspect || statement.election !== election) statement.abandonment.abort();
    }
  }

  private async watch(): Promise<void> {
    if (this.isWatching) return;
    this.isWatching = true;
    let look: Promise<void> | undefined;
    let waited = LATE;
    do {
      // A look may take longer than a second.
      look ??= this.options.look(waited >= OVERDUE).then(() => {
        look = undefined;
      });
      await sleep(LATE, undefined, { ref: false });
      waited = this.longestWait();
      if (Math.min(waited, this.silence()) >= LONGEST_SILENCE) {
        for (const statement of this.waiting) statement.isSuspect = true;
        this.options.onSilence();
      }
    } while (waited >= LATE);
    this.isWatching = false;
  }

  /** For how long the oldest statement has waited, in milliseconds; 0 when none waits. */
  private longestWait(): number {
    const [oldest] = this.waiting;
    return oldest ? performance.now() - oldest.since : 0;
  }

  /** For how long nothing has been heard of the host, in milliseconds. */
  private silence(): number {
    return performance.now() - Math.max(this.answeredAt, this.options.heardAt());
  }
}

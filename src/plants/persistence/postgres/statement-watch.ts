import type { ClientBase } from 'pg';
import type { PostgresHosts } from './postgres.hosts';
import { withTimeout } from './with-timeout';

/**
 * Milliseconds until a statement without an answer is abandoned and its session closed. TCP alone
 * would take a quarter of an hour to notice a dead server. The statement is not cancelled.
 */
const STATEMENT_TIMEOUT = 30_000;
/** Milliseconds after which a statement without an answer is late, and between two checks. */
const LATE = 1000;
/** Milliseconds after which a statement is overdue, even if its host answers others. */
const OVERDUE = 5000;
/** Milliseconds for which a host may be silent while a statement waits for it. */
const LONGEST_SILENCE = 3000;

/** A statement was abandoned, because another session or host is in use now. */
export class AbandonedError extends Error {
  override readonly message = 'the host stopped answering, and the statement was abandoned';
}

interface WaitingStatement {
  readonly since: number;
  readonly abandonment: AbortController;
  readonly session: ClientBase;
  /** Whether its host stopped answering. The connection may be lost even if the host is back. */
  isSuspect: boolean;
}

/**
 * Waits for statements, and notices when their host stops answering although no connection is reset,
 * because packets are lost. A host that answers other statements is only slow, and its statements may
 * wait.
 */
export class StatementWatch {
  /** The oldest first. */
  private readonly waiting = new Set<WaitingStatement>();
  private answeredAt = 0;
  private timer: NodeJS.Timeout | undefined;
  /** At the last tick of the timer. */
  private wasLate = false;
  private isChecking = false;

  /**
   * @param checkHosts called every second while a statement is late; never rejects
   * @param onSilence called while a statement waits for a host that has been silent for too long
   */
  constructor(
    private readonly hosts: PostgresHosts,
    private readonly checkHosts: (isOverdue: boolean) => Promise<void>,
    private readonly onSilence: () => void,
  ) {}

  /** @throws Error when there is no answer within 30 s, or the statement was abandoned */
  async answerTo<T>(session: ClientBase, statement: Promise<T>): Promise<T> {
    const abandonment = new AbortController();
    const waiting = { since: performance.now(), abandonment, session, isSuspect: false };
    this.waiting.add(waiting);
    this.timer ??= setInterval(() => {
      this.checkLate();
    }, LATE).unref();
    try {
      const answer = await withTimeout(statement, STATEMENT_TIMEOUT, abandonment.signal);
      this.answeredAt = performance.now();
      return answer;
    } finally {
      this.waiting.delete(waiting);
      if (this.waiting.size === 0) {
        clearInterval(this.timer);
        this.timer = undefined;
        this.wasLate = false;
      }
    }
  }

  /** Abandons the statements of a host that is no longer in use, or that had stopped answering. */
  abandonLost(): void {
    for (const { session, isSuspect, abandonment } of this.waiting) {
      if (isSuspect || !this.hosts.isCurrent(session)) abandonment.abort(new AbandonedError());
    }
  }

  private checkLate(): void {
    const [oldest] = this.waiting;
    const now = performance.now();
    const waited = oldest ? now - oldest.since : 0;
    const { wasLate } = this;
    this.wasLate = waited >= LATE;
    if (!this.wasLate) return;
    // Not at once: after a busy event loop, the answer may be here but not read yet.
    const silence = now - Math.max(this.answeredAt, this.hosts.heardAt);
    if (wasLate && Math.min(waited, silence) >= LONGEST_SILENCE) {
      for (const statement of this.waiting) statement.isSuspect = true;
      this.onSilence();
    }
    // A check may take longer than a second.
    if (this.isChecking) return;
    this.isChecking = true;
    void this.checkHosts(waited >= OVERDUE).finally(() => {
      this.isChecking = false;
    });
  }
}

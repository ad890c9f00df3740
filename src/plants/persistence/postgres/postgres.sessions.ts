import { Logger } from '@nestjs/common';
import type { ClientBase, ClientConfig, PoolClient } from 'pg';
import { UnavailableError } from '../../../errors';
import { CircuitBreaker } from '../circuit-breaker';
import {
  isAmbiguous,
  isMomentary,
  isPoolExhausted,
  isRowFault,
  isServerError,
  toOperatorError,
} from './postgres.errors';
import { PostgresHosts } from './postgres.hosts';
import { assertReadable, migrate } from './postgres.migrations';
import { AbandonedError, StatementWatch } from './statement-watch';
import { withTimeout } from './with-timeout';

/** Milliseconds that bringing the schema up to date may take, locks included. */
const MIGRATION_TIMEOUT = 30_000;
/** Milliseconds that a check of the hosts may take, while a statement is late. */
const CHECK_TIMEOUT = 5000;

/**
 * Sessions in the store, on the host that accepts writes. While there is none, callers are refused at
 * once, and the hosts are asked again and again.
 */
export class PostgresSessions {
  private readonly logger = new Logger('PlantStore');
  private readonly hosts: PostgresHosts;
  private readonly breaker = new CircuitBreaker(
    (signal) => this.prepare(signal),
    () => this.hosts.name,
  );
  private readonly watch: StatementWatch;
  private isUpgradeLogged = false;

  /** @throws Error when the URL or the settings are invalid */
  constructor(where: string | ClientConfig) {
    this.hosts = new PostgresHosts(
      where,
      (fault) => {
        this.breaker.open(fault);
      },
      (reason) => {
        this.logger.warn(reason);
      },
    );
    this.watch = new StatementWatch(
      this.hosts,
      (isOverdue) => this.checkHosts(isOverdue),
      () => {
        const fault = 'the host has stopped answering while a statement waits for it.';
        this.breaker.open(new Error(`${this.hosts.name}: ${fault}`));
      },
    );
  }

  /** Finds the store, and migrates it. Goes on after this if that takes long. */
  start(): Promise<void> {
    this.logger.log(`Plants are stored in ${this.hosts.names}`);
    return this.breaker.start();
  }

  async close(): Promise<void> {
    this.breaker.stop();
    await this.hosts.close();
  }

  /** Why there are no sessions; undefined while there are. */
  get fault(): Error | undefined {
    return this.breaker.fault;
  }

  get hasKeys(): boolean {
    return this.hosts.schema?.hasKeys ?? false;
  }

  /** @throws UnavailableError while there are no sessions */
  assertUsable(): void {
    if (this.fault) throw new UnavailableError({ cause: this.fault });
  }

  /** @throws UnavailableError for a second after a fault that only another write can detect */
  assertNotPaused(): void {
    const cause = this.breaker.pauseReason;
    if (cause) throw new UnavailableError({ cause });
  }

  /**
   * Takes a session. The caller releases it.
   *
   * @throws UnavailableError when there is none
   */
  async connect(): Promise<PoolClient> {
    this.assertUsable();
    try {
      return await this.hosts.connect();
    } catch (cause) {
      if (!isPoolExhausted(cause)) this.breaker.open(cause as Error);
      throw new UnavailableError({ cause });
    }
  }

  /** @throws AbandonedError when another session or host is in use now */
  answerTo<T>(session: ClientBase, statement: Promise<T>): Promise<T> {
    return this.watch.answerTo(session, statement);
  }

  confirm(): void {
    this.breaker.confirm();
  }

  /**
   * Takes the store out of use, unless the error of a statement says nothing about the host in use.
   * If it is ambiguous, but the session is alive, the host only lacks another server, for example.
   *
   * @returns the error for an operator
   */
  report(error: unknown, session: ClientBase, isSessionLost = !isServerError(error)): Error {
    const fault = toOperatorError(this.hosts.name, error);
    const isPast = error instanceof AbandonedError || !this.hosts.isCurrent(session);
    const isHarmless = isServerError(error) && (isMomentary(error) || isRowFault(error));
    if (isPast || (isHarmless && !isSessionLost)) return fault;
    if (!isSessionLost && isServerError(error) && isAmbiguous(error)) this.breaker.pause(fault);
    else this.breaker.open(fault, isSessionLost);
    return fault;
  }

  /** @throws UnavailableError when there is no session, or its host does not answer */
  async read<T>(statement: (session: ClientBase) => Promise<T>): Promise<T> {
    const session = await this.connect();
    try {
      const result = await this.answerTo(session, statement(session));
      session.release();
      return result;
    } catch (error) {
      session.release(true);
      throw new UnavailableError({ cause: toOperatorError(this.hosts.name, error) });
    }
  }

  private async prepare(signal: AbortSignal, prefersOthers = false): Promise<void> {
    await this.hosts.selectWritable(prefersOthers);
    const session = await this.hosts.connect();
    try {
      await withTimeout(this.useStore(session), MIGRATION_TIMEOUT, signal);
    } catch (error) {
      session.release(true);
      throw toOperatorError(this.hosts.name, error);
    }
    session.release();
    this.watch.abandonLost();
  }

  /**
   * While a statement is late: its host may have stopped answering, or may be a former primary that
   * answers, but waits for its standby.
   */
  private async checkHosts(isOverdue: boolean): Promise<void> {
    // While there is a fault, the breaker probes the hosts.
    if (this.fault) return;
    const { name } = this.hosts;
    try {
      await this.prepare(AbortSignal.timeout(CHECK_TIMEOUT), isOverdue);
      if (this.hosts.name === name) return;
      this.logger.warn(`${this.hosts.name}: in use now, because ${name} does not commit.`);
    } catch {
      // A late statement alone is not a fault. A host that stops answering becomes one soon.
    }
  }

  /** Once, although a migration is tried again and again while the table is locked. */
  private readonly logUpgrade = (line: string): void => {
    if (!this.isUpgradeLogged) this.logger.log(line);
    this.isUpgradeLogged = true;
  };

  /** Migrates the first store that is found. */
  private async useStore(session: ClientBase): Promise<void> {
    const { schema: inUse } = this.hosts;
    const schema = inUse ?? (await migrate(session, this.logUpgrade));
    await assertReadable(session, schema);
    if (inUse) return;
    this.hosts.useStore(schema);
    if (schema.hasKeys) return;
    this.logger.warn(
      `${this.hosts.name}: the Idempotency-Key header is ignored, because the table plants has no column idempotency_key of type bytea.`,
    );
  }
}

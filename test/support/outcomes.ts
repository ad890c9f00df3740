import { integrity, readPlants } from './sqlite';

/** What callers were told of each id: 200, or the number of the error. */
export class Outcomes extends Map<number, number> {
  /** @returns what is noted */
  note(id: number, { status, body }: { status: number; body: string }): number {
    const outcome = status === 200 ? 200 : (JSON.parse(body) as { error: number }).error;
    this.set(id, outcome);
    return outcome;
  }

  idsWith(outcome: number): number[] {
    return [...this.keys()].filter((id) => this.get(id) === outcome);
  }

  /** Holds what callers were told against what a database has, which is closed. */
  expectKept(file: string): void {
    const stored = new Set(readPlants(file).map(({ id }) => Number(id)));
    expect({
      lost: this.idsWith(200).filter((id) => !stored.has(id)),
      refusedButStored: this.idsWith(50300).filter((id) => stored.has(id)),
      integrity: integrity(file),
    }).toEqual({ lost: [], refusedButStored: [], integrity: 'ok' });
  }
}

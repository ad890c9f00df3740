import { integrity, readPlants } from './sqlite';

/** How many creations came to what, in the words of a report. */
export interface OutcomeReport {
  readonly acknowledged: number;
  readonly 'refused (50300)': number;
  readonly 'unknown (50400)': number;
  readonly 'acknowledged and lost': number;
  readonly 'refused but stored': number;
  readonly integrity: unknown;
}

/**
 * Holds what callers were told against what a database has.
 *
 * @param outcomes of each id: 200, or the number of the error
 * @param file the database, closed
 */
export function reportOutcomes(outcomes: ReadonlyMap<number, number>, file: string): OutcomeReport {
  const stored = new Set(readPlants(file).map(({ id }) => id));
  const idsWith = (outcome: number): bigint[] =>
    [...outcomes].filter(([, each]) => each === outcome).map(([id]) => BigInt(id));
  return {
    acknowledged: idsWith(200).length,
    'refused (50300)': idsWith(50300).length,
    'unknown (50400)': idsWith(50400).length,
    'acknowledged and lost': idsWith(200).filter((id) => !stored.has(id)).length,
    'refused but stored': idsWith(50300).filter((id) => stored.has(id)).length,
    integrity: integrity(file),
  };
}

import type { PostgresOptions } from './postgres/postgres.options';

/** The kinds of stores, each with the type of its location. TypeScript reports each place that lacks a new kind. */
export interface StoreLocations {
  /** The path of a file. */
  readonly sqlite: string;
  /** A URL, a function that returns the URL as it is now, or settings of the driver. */
  readonly postgres: string | (() => string) | PostgresOptions;
}

/** A kind of store. It has the name of its option. */
export type StoreKind = keyof StoreLocations;

/** Where plants are stored: the location of one kind of store, such as `{ sqlite: 'data/plants.db' }`. */
export type StoreLocation = { [Kind in StoreKind]: Pick<StoreLocations, Kind> }[StoreKind];

/** A function for each kind of store, which gets its location. */
export type StoreCases<Result> = {
  readonly [Kind in StoreKind]: (location: StoreLocations[Kind]) => Result;
};

/** Calls the function for the kind of a location. */
export function matchKind<Result>(location: StoreLocation, cases: StoreCases<Result>): Result {
  // TypeScript does not know that the value is a location of this kind.
  const [[kind, value]] = Object.entries(location) as [[StoreKind, never]];
  return cases[kind](value);
}

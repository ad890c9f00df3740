/** A plant as it is stored. */
export interface Plant {
  /** Identification number, -2^63 to 2^63 - 1. */
  readonly id: bigint;
  /** The name, stored to the character; it may be empty. */
  readonly name: string;
  /** The type of the plant, stored to the character; absent when the plant has none. */
  readonly tag?: string | undefined;
}

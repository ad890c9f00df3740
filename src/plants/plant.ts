/** A plant as it is kept. */
export interface Plant {
  /** Identification number, -2^63 to 2^63 - 1. */
  readonly id: bigint;
  /** The name, kept to the character; it may be empty. */
  readonly name: string;
  /** What type of plant it is, kept to the character; absent when the plant has none. */
  readonly tag?: string | undefined;
}

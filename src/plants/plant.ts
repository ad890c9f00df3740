/** A plant as it is stored. */
export interface Plant {
  /** Identification number, -2^63 to 2^63 - 1. */
  readonly id: bigint;
  /** The name, stored to the character; it may be empty. */
  readonly name: string;
  /** The type of the plant, stored to the character; absent when the plant has none. */
  readonly tag?: string | undefined;
}

/** A plant as the service returns it, which a controller or an RPC handler may return in its turn. */
export interface StoredPlant extends Plant {
  /** What `JSON.stringify` uses. Most readers would round a number, so the id is a string. */
  toJSON(): PlantJson;
}

/** A plant in JSON, outside the contract's own operation. */
export interface PlantJson {
  /** The id in decimal digits; `BigInt(id)` reads it. */
  readonly id: string;
  readonly name: string;
  readonly tag?: string | undefined;
}

/** All of a plant but its id. */
export interface PlantContent {
  /** The name, stored to the character; it may be empty. */
  readonly name: string;
  /** The type of the plant, stored to the character; absent when the plant has none. */
  readonly tag?: string | undefined;
}

/** A plant as it is stored. */
export interface Plant extends PlantContent {
  /** Identification number, -2^63 to 2^63 - 1. */
  readonly id: bigint;
}

/** A plant in JSON, outside the contract's own operation. */
export interface PlantJson extends PlantContent {
  /** The id in decimal digits; `BigInt(id)` reads it. */
  readonly id: string;
}

/** A plant as the service returns it, which a controller or an RPC handler may return in its turn. */
export class StoredPlant implements Plant {
  readonly id: bigint;
  readonly name: string;
  readonly tag?: string | undefined;

  constructor({ id, name, tag }: Plant) {
    this.id = id;
    this.name = name;
    if (tag !== undefined) this.tag = tag;
  }

  /** What `JSON.stringify` uses. Most readers would round a number, so the id is a string. */
  toJSON(): PlantJson {
    return { id: String(this.id), ...contentOf(this) };
  }
}

/** A plant that the service has created, or had created before. */
export class CreatedPlant extends StoredPlant {
  /** @param isReplay whether an earlier creation with the same idempotency key had stored it */
  constructor(
    plant: Plant,
    readonly isReplay: boolean,
  ) {
    super(plant);
  }
}

/** A member that the plant does not have is undefined. */
export function contentOf({ name, tag }: Plant): PlantContent {
  return { name, tag };
}

/** How many characters the texts of a plant have. */
export function textLength({ name, tag = '' }: PlantContent): number {
  return name.length + tag.length;
}

/** Whether two plants are the same but for their ids. */
export function hasSameContent(one: Plant, other: Plant): boolean {
  return one.name === other.name && one.tag === other.tag;
}

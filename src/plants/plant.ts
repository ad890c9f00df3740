/** All of a plant but its id. */
export interface PlantContent {
  /** The name, stored to the character; it may be empty. */
  readonly name: string;
  /** The type of the plant, stored to the character; absent when the plant has none. */
  readonly tag?: string | undefined;
}

/**
 * The properties of a plant besides its id, in the order of their columns. Statements, comparisons,
 * export, import and the readers of the tests come from this list.
 */
export const CONTENT_PROPERTIES = Object.keys({
  name: true,
  tag: true,
} satisfies Record<keyof PlantContent, true>) as (keyof PlantContent)[];

/** The columns of a plant, which are named like its properties. */
export const PLANT_COLUMNS = ['id', ...CONTENT_PROPERTIES] as const;

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

/** A row of a database with the columns of a plant. */
export type PlantRow = { readonly id: bigint | string } & {
  readonly [Property in keyof PlantContent]-?: string | null;
};

/** A plant as the service returns it, which a controller or an RPC handler may return in its turn. */
export class StoredPlant implements Plant {
  readonly id: bigint;
  declare readonly name: string;
  declare readonly tag?: string | undefined;

  constructor(plant: Plant) {
    this.id = plant.id;
    Object.assign(this, contentOf(plant));
  }

  /** What `JSON.stringify` uses. Most readers would round a number, so the id is a string. */
  toJSON(): PlantJson {
    return { id: String(this.id), ...contentOf(this) };
  }
}

/** A plant that the service has created, or had created before. */
export class CreatedPlant extends StoredPlant {
  /** @param isReplay whether an earlier call with the same idempotency key had stored it */
  constructor(
    plant: Plant,
    readonly isReplay: boolean,
  ) {
    super(plant);
  }
}

/** Copies the content of a plant, without the properties that it lacks. */
export function contentOf(plant: PlantContent): PlantContent {
  const content: Partial<Record<keyof PlantContent, string>> = {};
  for (const property of CONTENT_PROPERTIES) {
    const value = plant[property];
    if (value !== undefined) content[property] = value;
  }
  return content as PlantContent;
}

/** Reads a plant from a row, where null stands for a property that the plant lacks. */
export function plantFromRow(row: PlantRow): Plant {
  const plant: Partial<Record<keyof PlantContent, string>> & { id: bigint } = {
    id: BigInt(row.id),
  };
  for (const property of CONTENT_PROPERTIES) {
    const value = row[property];
    if (value !== null) plant[property] = value;
  }
  return plant as Plant;
}

/** The total length of the strings of a plant, in UTF-16 code units. */
export function textLength(plant: PlantContent): number {
  return CONTENT_PROPERTIES.reduce((sum, property) => sum + (plant[property]?.length ?? 0), 0);
}

/** Whether two plants are equal apart from their ids. */
export function hasSameContent(one: PlantContent, other: PlantContent): boolean {
  return CONTENT_PROPERTIES.every((property) => one[property] === other[property]);
}

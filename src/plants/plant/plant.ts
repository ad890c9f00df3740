/** A plant without its id. */
export interface PlantContent {
  /** The name, stored exactly as given. It may be empty. */
  readonly name: string;
  /** The type of the plant, stored exactly as given. Absent if the plant has none. */
  readonly tag?: string | undefined;
}

/**
 * The properties of a plant except its id, in the order of their columns. SQL statements, comparisons, export, import and
 * the readers of the tests are built from this list.
 */
export const CONTENT_PROPERTIES = Object.keys({
  name: true,
  tag: true,
} satisfies Record<keyof PlantContent, true>) as (keyof PlantContent)[];

/** The columns of the table `plants`. They have the names of the properties. */
export const PLANT_COLUMNS = ['id', ...CONTENT_PROPERTIES] as const;

/** A plant as it is stored. */
export interface Plant extends PlantContent {
  /** Identification number, -2^63 to 2^63 - 1. `JSON.stringify` throws on a bigint: convert it to a string first. */
  readonly id: bigint;
}

/** The values of {@link PLANT_COLUMNS} in a row, as a database driver returns them. */
export type PlantRow = [id: bigint | string, ...content: (string | null)[]];

/** The result of `create`: a plant that is new, or that an earlier call already created. */
export interface CreatedPlant extends Plant {
  /** Whether an earlier call with the same idempotency key already stored the plant. */
  readonly isReplay: boolean;
}

/** Copies the content of a plant. Undefined properties are left out. */
export function contentOf(plant: PlantContent): PlantContent {
  const content: Partial<Record<keyof PlantContent, string>> = {};
  for (const property of CONTENT_PROPERTIES) {
    const value = plant[property];
    if (value !== undefined) content[property] = value;
  }
  return content as PlantContent;
}

/** Converts a row to a plant. A null column becomes an absent property. */
export function plantFromRow(row: PlantRow): Plant {
  const plant: Partial<Record<keyof Plant, unknown>> = { id: BigInt(row[0]) };
  CONTENT_PROPERTIES.forEach((property, at) => {
    const value = row[at + 1];
    if (typeof value === 'string') plant[property] = value;
  });
  return plant as Plant;
}

/** The total length of the strings of a plant, in UTF-16 code units. */
export function textLength(plant: PlantContent): number {
  return CONTENT_PROPERTIES.reduce((sum, property) => sum + (plant[property]?.length ?? 0), 0);
}

/** Whether two plants have the same content. Their ids are not compared. */
export function hasSameContent(one: PlantContent, other: PlantContent): boolean {
  return CONTENT_PROPERTIES.every((property) => one[property] === other[property]);
}

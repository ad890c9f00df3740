import { INT64_MAX, INT64_MIN } from '../../src/plants/plant/int64';
import { parseJson } from '../../src/plants/plant/json';
import type { Plant, PlantContent } from '../../src/plants/plant/plant';

// The rules of the contract for a plant, and examples of it. The DTO, the OpenAPI schema, `import` and `export` are
// tested with this list.

/** The maximum numbers of characters of strings. */
export const MAX_LENGTHS: Partial<Record<keyof PlantContent, number>> = {};

/** Repeats the rule of the contract: a string without U+0000, without unpaired surrogates, and not too long. */
const isValidText = (value: unknown, maxLength = Infinity): boolean =>
  typeof value === 'string' &&
  Array.from(value).length <= maxLength &&
  !Array.from(value).some((character) => /^[\0\ud800-\udfff]$/.test(character));

/** Whether a property may have a value. */
export const RULES: Record<keyof Plant, (value: unknown) => boolean> = {
  id: (value) => typeof value === 'bigint' && BigInt.asIntN(64, value) === value,
  name: (value) => isValidText(value, MAX_LENGTHS.name),
  tag: (value) => value === undefined || isValidText(value, MAX_LENGTHS.tag),
};

/** Values at the edges of rules, also of rules that the contract does not have. */
// prettier-ignore
export const EDGES: readonly unknown[] = [
  '', ' ', ' Fern', 'Fern ', 'Fern\n', 'Fe\trn', 'Fe  rn', '\u00a0', '\u200b', '\ufeff', '\u0001', '\u007f', '\u0085',
  '\t', '\r\n', '\v', '\u2028', '\\N', 'fern', 'FERN', 'f', '7', '-7', 'null', 'ä', 'e\u0301', '\u00e9', '🌿', '漢',
  '\uffff', '<b>', '&', '"', "'", '\\', '/', '-', '_', '.', ',', ';', '%', '$', '__proto__', '\0', '\n\0', 'Fern\0',
  '\ud800', 'Fern\udc00', '\udf3f\ud83c', 'x'.repeat(40), 'x'.repeat(41), 'x'.repeat(255), 'x'.repeat(256),
  INT64_MIN - 1n, INT64_MIN, -1n, 0n, 1n, 2n ** 31n, 2n ** 53n + 1n, INT64_MAX, INT64_MAX + 1n, 2n ** 64n,
  undefined, null, true, 0, 1, 1.5, NaN, {}, [], ['Fern'], [1n],
];

/** A plant as JSON. */
export interface Example {
  readonly json: string;
  /** The property that has the value of an edge. */
  readonly property: keyof Plant;
  readonly isValid: boolean;
}

/** The edges of each property, as far as JSON has them. Their ids differ, except those at the edges of ids. */
export function createExamples(): Example[] {
  let nextId = 1000;
  return (Object.keys(RULES) as (keyof Plant)[]).flatMap((property) =>
    EDGES.map((edge) => {
      const json = formatPlant({ id: BigInt(nextId++), name: 'Fern', [property]: edge });
      const { [property]: value } = parseJson(json) as Record<string, unknown>;
      return { json, property, isValid: RULES[property](value) };
    }),
  );
}

/** Formats an object with bigints. Omits undefined properties. */
function formatPlant(plant: object): string {
  const properties = Object.entries(plant).map(([name, value]) => [name, formatValue(value)]);
  const written = properties.filter(([, json]) => json !== undefined);
  return `{${written.map(([name, json]) => `"${name}":${json}`).join(',')}}`;
}

function formatValue(value: unknown): string | undefined {
  if (typeof value === 'bigint') return String(value);
  if (Array.isArray(value)) return `[${value.map(formatValue).join(',')}]`;
  return JSON.stringify(value);
}

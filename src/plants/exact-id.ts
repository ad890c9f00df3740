import { parseInt64 } from './int64';
import { sourceOfMember } from './json-member';

/**
 * A number of up to 15 digits is exact as a double, unless it is too small for one and becomes 0: then no
 * other number of up to 15 digits has the same double.
 */
const LONGEST_EXACT = 15;

/**
 * The id of a JSON object, exactly.
 *
 * @param id what `JSON.parse` made of it
 * @param json the text of the object
 * @returns a bigint when the id is written as an int64; otherwise the number, which the rules refuse
 */
export function exactId(id: number, json: string): bigint | number {
  const literal = sourceOfMember(json, 'id') ?? '';
  // Several times as fast as parsing it again. Most ids are so short.
  if (literal.length <= LONGEST_EXACT && Number.isSafeInteger(id) && id !== 0) return BigInt(id);
  return parseInt64(literal) ?? id;
}

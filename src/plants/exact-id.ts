import { parseInt64 } from './int64';
import { sourceOfMember } from './json-member';

/**
 * No two numbers of up to 15 digits have the same double, so that one whose double is an integer is that
 * integer. The exception is 0, which stands for all numbers that are too small for a double.
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
  // Several times as fast as parsing the text, and most ids are that short.
  if (literal.length <= LONGEST_EXACT && Number.isSafeInteger(id) && id !== 0) return BigInt(id);
  return parseInt64(literal) ?? id;
}

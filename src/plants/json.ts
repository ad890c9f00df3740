import { parseInt64 } from './int64';

/**
 * The id of a JSON object, exactly, because `JSON.parse` rounds numbers to doubles.
 *
 * @param id what `JSON.parse` made of it
 * @returns a bigint when the id is written as an int64; otherwise the number, which the rules refuse
 */
export function exactId(id: number, json: string): bigint | number {
  return parseInt64(sourceOfMember(json, 'id') ?? '') ?? id;
}

/**
 * How the value of a member is written. Without recursion, so that depth costs nothing.
 *
 * @param json a JSON object that `JSON.parse` has accepted
 * @param name the member's name, after unescaping
 * @returns of several members the last, as `JSON.parse` does; undefined when there is none
 */
export function sourceOfMember(json: string, name: string): string | undefined {
  let source: string | undefined;
  let depth = 0;
  let key: string | undefined;
  let valueStart = -1;

  for (let at = 0; at < json.length; at++) {
    switch (json.charAt(at)) {
      case '"': {
        const start = at;
        at = endOfString(json, at);
        if (depth === 1 && valueStart < 0) key = json.slice(start, at + 1);
        break;
      }
      case '{':
      case '[':
        depth++;
        break;
      case ':':
        if (depth === 1) valueStart = at + 1;
        break;
      case ',':
      case '}':
      case ']':
        if (depth === 1) {
          if (key && unquoted(key) === name) source = json.slice(valueStart, at).trim();
          key = undefined;
          valueStart = -1;
        }
        if (json[at] !== ',') depth--;
        break;
    }
  }
  return source;
}

/** The index of the quotation mark that ends the string which begins at `start`. */
function endOfString(json: string, start: number): number {
  let end = start;
  do {
    end = json.indexOf('"', end + 1);
  } while (isEscaped(json, end));
  return end;
}

/** Whether an odd number of backslashes stands before the character at `at`. */
function isEscaped(json: string, at: number): boolean {
  let backslash = at;
  while (json[backslash - 1] === '\\') backslash--;
  return (at - backslash) % 2 === 1;
}

function unquoted(string: string): unknown {
  return string.includes('\\') ? JSON.parse(string) : string.slice(1, -1);
}

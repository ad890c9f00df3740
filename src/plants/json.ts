import { NotJsonError } from './errors/errors';
import { parseInt64 } from './int64';

/**
 * Parses a JSON text. The `id` of an object becomes a bigint, by its exact value, if it is written as an
 * int64; `JSON.parse` rounds numbers to doubles. If a property occurs twice, the last one is used.
 *
 * @throws NotJsonError when the text is not JSON
 */
export function parseJson(text: string): unknown {
  const value = parse(text);
  if (typeof value !== 'object' || value === null || !('id' in value)) return value;
  if (typeof value.id !== 'number') return value;
  const id = parseInt64(sourceOfMember(text, 'id') ?? '');
  return id === undefined ? value : Object.assign(value, { id });
}

function parse(text: string): unknown {
  if (text.startsWith('\uFEFF'))
    throw new NotJsonError('Not JSON: it begins with a byte order mark.');
  try {
    return JSON.parse(text);
  } catch (error) {
    // It may quote some characters of the text.
    const reason = (error as Error).message.replaceAll(/[^ -~]/g, '?');
    throw new NotJsonError(`Not JSON: ${reason}`);
  }
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

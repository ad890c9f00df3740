import { NotJsonError } from './errors/errors';
import { parseInt64 } from './int64';

/**
 * Parses JSON. If the `id` of an object is a number whose exact value is an int64, it becomes a bigint,
 * because `JSON.parse` rounds numbers to doubles. If a property occurs twice, the last one is used.
 *
 * @throws NotJsonError when the text is not JSON
 */
export function parseJson(text: string): unknown {
  const value = parse(text);
  if (typeof value !== 'object' || value === null || !('id' in value)) return value;
  if (typeof value.id !== 'number') return value;
  const id = parseInt64(findPropertySource(text, 'id') ?? '');
  return id === undefined ? value : Object.assign(value, { id });
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    // The message may quote characters of the body.
    const reason = (error as Error).message.replaceAll(/[^ -~]/g, '?');
    throw new NotJsonError(`Not JSON: ${reason}`);
  }
}

/**
 * Returns the source text of the value of a top-level property. Not recursive, so that deep nesting is safe.
 *
 * @param json a JSON object that `JSON.parse` has accepted
 * @param name the name of the property, unescaped
 * @returns the last value if the property occurs several times, like `JSON.parse`; undefined if it is missing
 */
export function findPropertySource(json: string, name: string): string | undefined {
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
          if (key && unquote(key) === name) source = json.slice(valueStart, at).trim();
          key = undefined;
          valueStart = -1;
        }
        if (json[at] !== ',') depth--;
        break;
    }
  }
  return source;
}

/** Returns the index of the closing quotation mark of the string that begins at `start`. */
function endOfString(json: string, start: number): number {
  let end = start;
  do {
    end = json.indexOf('"', end + 1);
  } while (isEscaped(json, end));
  return end;
}

/** Whether an odd number of backslashes precedes the character at `at`. */
function isEscaped(json: string, at: number): boolean {
  let backslash = at;
  while (json[backslash - 1] === '\\') backslash--;
  return (at - backslash) % 2 === 1;
}

function unquote(string: string): unknown {
  return string.includes('\\') ? JSON.parse(string) : string.slice(1, -1);
}

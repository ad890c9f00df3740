/** RFC 8259 sections 3 and 6: `true`, `false`, `null` and numbers. */
const LITERAL = /true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;

/** RFC 8259 section 7: what may follow a backslash. */
const ESCAPE = /["\\/bfnrt]|u[\dA-Fa-f]{4}/y;

const SPACE = /[ \t\n\r]*/y;

/**
 * Finds why a text is not JSON: what was expected, and where. The message of `JSON.parse` would quote
 * the text, and changes with the version of V8.
 *
 * @returns for example `expected "," or "}" at line 1, column 9`, where columns count UTF-16 code units;
 *   undefined when the text is JSON
 */
export function findJsonFault(text: string): string | undefined {
  const reader = new Reader(text);
  const expected = reader.findFault();
  if (expected === undefined) return undefined;
  const lines = text.slice(0, reader.at).split('\n');
  return `expected ${expected} at line ${lines.length}, column ${(lines.at(-1)?.length ?? 0) + 1}`;
}

/** Reads a text, from its beginning to its fault. It does not recur, so that depth costs little. */
class Reader {
  at = 0;

  constructor(private readonly text: string) {}

  /** What was expected where the reader has stopped; undefined when the text is JSON. */
  findFault(): string | undefined {
    /** What closes each array and object that is open. */
    const open: ('}' | ']')[] = [];
    for (;;) {
      // A value, or the beginning of one with elements.
      if (this.take('{')) {
        if (!this.take('}')) {
          open.push('}');
          const fault = this.faultOfName();
          if (fault !== undefined) return fault;
          continue;
        }
      } else if (this.take('[')) {
        if (!this.take(']')) {
          open.push(']');
          continue;
        }
      } else if (this.take('"')) {
        const fault = this.faultOfString();
        if (fault !== undefined) return fault;
      } else if (!this.accept(LITERAL)) {
        return 'a value';
      }
      // What follows a value.
      let end = open.at(-1);
      while (end !== undefined && this.take(end)) {
        open.pop();
        end = open.at(-1);
      }
      if (end === undefined) {
        this.accept(SPACE);
        return this.at === this.text.length ? undefined : 'the end';
      }
      if (!this.take(',')) return `"," or "${end}"`;
      const fault = end === '}' ? this.faultOfName() : undefined;
      if (fault !== undefined) return fault;
    }
  }

  private faultOfName(): string | undefined {
    if (!this.take('"')) return 'the name of a member';
    return this.faultOfString() ?? (this.take(':') ? undefined : '":"');
  }

  /** Reads a string, behind its first quotation mark. */
  private faultOfString(): string | undefined {
    for (;;) {
      const character = this.text[this.at];
      if (character === undefined) return 'the end of the string';
      if (character < ' ') return 'no control character in the string';
      this.at++;
      if (character === '"') return undefined;
      if (character === '\\' && !this.accept(ESCAPE)) return 'an escape sequence';
    }
  }

  /** Reads a character behind white space, if it is there. */
  private take(character: string): boolean {
    this.accept(SPACE);
    const isThere = this.text[this.at] === character;
    if (isThere) this.at++;
    return isThere;
  }

  /** Reads what a pattern matches, if it does. */
  private accept(pattern: RegExp): boolean {
    pattern.lastIndex = this.at;
    const isThere = pattern.test(this.text);
    if (isThere) this.at = pattern.lastIndex;
    return isThere;
  }
}

import type { PlantLines } from '../../plants.archive';

/** Bytes of lines that are given away at once: each time costs as much as many plants. */
const BLOCK_SIZE = 2 ** 17;

/** What a line has before the columns id, name, tag and idempotency key. */
const MEMBERS = ['{"id":', ',"name":"', ',"tag":"', ',"idempotencyKey":"'].map((text) =>
  Buffer.from(text),
);
const LINE_END = Buffer.from('}\n');
/** The most bytes that one byte becomes: at the end of a column, a quotation mark and a member. */
const MAX_GROWTH = 20;

const [TAB, NEWLINE, QUOTE, BACKSLASH, LETTER_N] = Buffer.from('\t\n"\\N');

/** The bytes that differ in a string of JSON, and how they are written there. */
const JSON_ESCAPES = new Map(
  [...Array(0x20).keys(), QUOTE, BACKSLASH].map((byte = 0) => [
    byte,
    Buffer.from(JSON.stringify(String.fromCharCode(byte)).slice(1, -1)),
  ]),
);

/** Whether a byte is the same in the text format and in JSON. All of a character beyond ASCII are. */
const isPlain = Uint8Array.from({ length: 256 }, (_, byte) => Number(!JSON_ESCAPES.has(byte)));

/** What the text format writes after a backslash. Another character stands for itself. */
const UNESCAPED = new Map(
  [...'b\bf\fn\nr\rt\tv\v'.matchAll(/(.)(.)/gs)].map(([, letter = '', character = '']) => [
    letter.charCodeAt(0),
    character.charCodeAt(0),
  ]),
);

/**
 * Turns the text format of COPY into JSON Lines as its bytes arrive (PostgreSQL documentation, COPY,
 * "Text Format"). The columns are id, name, tag and, if there is one, the idempotency key in hexadecimal
 * digits. A server that writes JSON takes three times as long.
 */
export class CopyTextReader {
  private output = Buffer.allocUnsafe(2 * BLOCK_SIZE);
  /** The other one is with whoever was given the last lines. */
  private nextOutput = Buffer.allocUnsafe(2 * BLOCK_SIZE);
  /** Bytes in the output, and those of them that are whole lines. */
  private length = 0;
  private whole = 0;
  private count = 0;
  private column = 0;
  /** Where the member of this column begins, and whether its value is a string. */
  private start = 0;
  private isString = false;
  /** Whether the last byte was the backslash of an escape. */
  private isEscape = false;

  /** Takes the next bytes, and gives lines once there are many. They are valid until others are given. */
  read(chunk: Buffer): PlantLines | undefined {
    this.reserve(chunk.length * MAX_GROWTH);
    const { output } = this;
    let { length } = this;
    const append = (bytes: Uint8Array | undefined): void => {
      for (const byte of bytes ?? []) output[length++] = byte;
    };
    const endColumn = (): void => {
      if (this.isString) append(QUOTE_MARK);
    };

    for (const byte of chunk) {
      if (this.isEscape) {
        this.isEscape = false;
        if (byte === LETTER_N) {
          // NULL, as the whole value. A text never has this escape.
          length = this.start;
          this.isString = false;
        } else {
          append(JSON_ESCAPES.get(UNESCAPED.get(byte) ?? byte) ?? Uint8Array.of(byte));
        }
      } else if (isPlain[byte]) {
        if (length === this.whole) append(MEMBERS[0]);
        output[length++] = byte;
      } else if (byte === TAB) {
        endColumn();
        this.start = length;
        this.isString = true;
        append(MEMBERS[++this.column]);
      } else if (byte === NEWLINE) {
        endColumn();
        append(LINE_END);
        this.whole = length;
        this.count++;
        this.column = 0;
        this.isString = false;
      } else if (byte === BACKSLASH) {
        this.isEscape = true;
      } else {
        append(JSON_ESCAPES.get(byte));
      }
    }
    this.length = length;
    return this.whole >= BLOCK_SIZE ? this.take() : undefined;
  }

  /** Gives the whole lines that there are. They are valid until others are given. */
  take(): PlantLines | undefined {
    if (this.count === 0) return undefined;
    const { output } = this;
    const lines = { count: this.count, bytes: output.subarray(0, this.whole) };
    if (this.nextOutput.length < output.length) this.nextOutput = Buffer.allocUnsafe(output.length);
    output.copy(this.nextOutput, 0, this.whole, this.length);
    [this.output, this.nextOutput] = [this.nextOutput, output];
    this.length -= this.whole;
    this.start -= this.whole;
    this.whole = this.count = 0;
    return lines;
  }

  private reserve(size: number): void {
    if (this.length + size <= this.output.length) return;
    const larger = Buffer.allocUnsafe(2 * this.length + size);
    this.output.copy(larger, 0, 0, this.length);
    this.output = larger;
  }
}

const QUOTE_MARK = Buffer.from('"');

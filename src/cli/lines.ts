/** A nonempty line of a file. */
export interface Line {
  /** Starts at 1. Empty lines count too. */
  readonly number: number;
  /** Without LF or CRLF. Undefined if the line is longer than the limit. */
  readonly bytes: Buffer | undefined;
}

const [CR, LF] = [0x0d, 0x0a];

/**
 * Reads the nonempty lines of a file as its bytes arrive. Skips a leading byte order mark.
 *
 * @param maxLineBytes the maximum length of a line, which bounds the memory
 */
export async function* readLines(
  chunks: AsyncIterable<Buffer>,
  maxLineBytes: number,
): AsyncGenerator<Line> {
  let number = 0;
  let parts: Buffer[] = [];
  let length = 0;

  function finish(): Line | undefined {
    let bytes = Buffer.concat(parts);
    if (++number === 1 && bytes.indexOf('\uFEFF') === 0) bytes = bytes.subarray(3);
    if (bytes.at(-1) === CR) bytes = bytes.subarray(0, -1);
    const isTooLong = length > maxLineBytes + 1 || bytes.length > maxLineBytes;
    parts = [];
    length = 0;
    if (isTooLong) return { number, bytes: undefined };
    return bytes.length > 0 ? { number, bytes } : undefined;
  }

  for await (const chunk of chunks) {
    for (let start = 0, end; start < chunk.length; start = end + 1) {
      end = chunk.indexOf(LF, start);
      const part = chunk.subarray(start, end < 0 ? undefined : end);
      length += part.length;
      // Allows one byte more, because the last byte may be the CR of the line end.
      if (length <= maxLineBytes + 1) parts.push(part);
      else parts = [];
      if (end < 0) break;
      const line = finish();
      if (line) yield line;
    }
  }
  const last = finish();
  if (last) yield last;
}

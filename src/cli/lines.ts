/** A line of a file that is not empty. */
export interface Line {
  /** From 1; empty lines count too. */
  readonly number: number;
  /** Without LF or CRLF; undefined when there are more than the limit. */
  readonly bytes: Buffer | undefined;
}

const [CR, LF] = [0x0d, 0x0a];

/**
 * Reads the lines of a file as its bytes arrive. A byte order mark at the start is no part of the first.
 *
 * @param limit the most bytes of a line, which bounds the memory
 */
export async function* readLines(
  chunks: AsyncIterable<Buffer>,
  limit: number,
): AsyncGenerator<Line> {
  let number = 0;
  let parts: Buffer[] = [];
  let length = 0;

  function finish(): Line | undefined {
    let bytes = Buffer.concat(parts);
    if (++number === 1 && bytes.indexOf('\uFEFF') === 0) bytes = bytes.subarray(3);
    if (bytes.at(-1) === CR) bytes = bytes.subarray(0, -1);
    const isTooLong = length > limit + 1 || bytes.length > limit;
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
      // One byte more than the limit, because the last may be the CR of the line end.
      if (length <= limit + 1) parts.push(part);
      else parts = [];
      if (end < 0) break;
      const line = finish();
      if (line) yield line;
    }
  }
  const last = finish();
  if (last) yield last;
}

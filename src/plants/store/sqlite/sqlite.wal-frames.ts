/**
 * The chain of checksums of a write-ahead log, https://sqlite.org/fileformat2.html#walformat (section 4).
 *
 * A header of 32 bytes is followed by frames: a header of 24 bytes and a page. All numbers are big-endian. The checksum
 * of a frame includes that of the frame before it, and its salts are those of the header, so the first frame that does
 * not fit ends the log.
 */
import { closeSync, openSync, readSync } from 'node:fs';
import { endianness } from 'node:os';

const HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;

/** The first number of the header. Its last bit is set if the checksums read the content as big-endian numbers. */
const MAGIC = 0x377f0682;

/** Positions in the header of the log. */
const PAGE_SIZE_AT = 8;
const SALTS_AT = 16;
const HEADER_CHECKSUM_AT = 24;

/** Positions in the header of a frame. A frame that ends a transaction has the size of the database, not 0. */
const DATABASE_SIZE_AT = 4;
const FRAME_SALTS_AT = 8;
const FRAME_CHECKSUM_AT = 16;

const SALTS_BYTES = 8;
const CHECKSUM_BYTES = 8;

/** Counts the frames of a write-ahead log up to the last transaction that can be read. */
export function countReadableFrames(walPath: string): number {
  const descriptor = openSync(walPath, 'r');
  try {
    const header = Buffer.alloc(HEADER_BYTES);
    if (readSync(descriptor, header, 0, HEADER_BYTES, 0) < HEADER_BYTES) return 0;
    const magic = header.readUInt32BE(0);
    if ((magic & ~1) !== MAGIC) return 0;
    const checksum = new Checksum(magic !== MAGIC);
    checksum.add(header.subarray(0, HEADER_CHECKSUM_AT));
    if (!checksum.equals(header, HEADER_CHECKSUM_AT)) return 0;

    const salts = header.subarray(SALTS_AT, SALTS_AT + SALTS_BYTES);
    const frame = Buffer.alloc(FRAME_HEADER_BYTES + header.readUInt32BE(PAGE_SIZE_AT));
    let count = 0;
    for (let number = 1; ; number++) {
      const at = HEADER_BYTES + (number - 1) * frame.length;
      if (readSync(descriptor, frame, 0, frame.length, at) < frame.length) return count;
      const frameSalts = frame.subarray(FRAME_SALTS_AT, FRAME_SALTS_AT + SALTS_BYTES);
      checksum.add(frame.subarray(0, FRAME_SALTS_AT));
      checksum.add(frame.subarray(FRAME_HEADER_BYTES));
      if (!frameSalts.equals(salts) || !checksum.equals(frame, FRAME_CHECKSUM_AT)) return count;
      if (frame.readUInt32BE(DATABASE_SIZE_AT) > 0) count = number;
    }
  } finally {
    closeSync(descriptor);
  }
}

/** The cumulative checksum of section 4.2. */
class Checksum {
  private first = 0;
  private second = 0;
  private readonly mustSwap: boolean;

  constructor(isBigEndian: boolean) {
    this.mustSwap = isBigEndian !== (endianness() === 'BE');
  }

  /** Adds content, whose length is a multiple of 8 bytes. */
  add(content: Buffer): void {
    const copy = Buffer.from(content);
    if (this.mustSwap) copy.swap32();
    const numbers = new Uint32Array(copy.buffer, copy.byteOffset, copy.length / 4);
    let { first, second } = this;
    for (let at = 0; at < numbers.length; at += 2) {
      first = (first + (numbers[at] ?? 0) + second) >>> 0;
      second = (second + (numbers[at + 1] ?? 0) + first) >>> 0;
    }
    this.first = first;
    this.second = second;
  }

  /** Whether this is the checksum that a header contains. */
  equals(header: Buffer, at: number): boolean {
    const stored = header.subarray(at, at + CHECKSUM_BYTES);
    return stored.readUInt32BE(0) === this.first && stored.readUInt32BE(4) === this.second;
  }
}

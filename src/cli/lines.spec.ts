import { Readable } from 'node:stream';
import fc from 'fast-check';
import { readLines } from './lines';

const MAX_LINE_BYTES = 12;

/** Reads the numbered lines of a file that arrives in chunks. Decodes each byte as one character. */
async function readFileLines(file: Buffer, boundaries: readonly number[] = []): Promise<string[]> {
  const ends = [
    ...boundaries.map((boundary) => boundary % (file.length + 1)).sort((a, b) => a - b),
    file.length,
  ];
  const chunks = ends.map((end, at) => file.subarray(ends[at - 1] ?? 0, end));
  const lines: string[] = [];
  for await (const { number, bytes } of readLines(Readable.from(chunks), MAX_LINE_BYTES)) {
    lines.push(`${number} ${bytes?.toString('latin1') ?? 'too long'}`);
  }
  return lines;
}

it.each([
  ['', []],
  ['1', ['1 1']],
  ['1\r\n2\r\n', ['1 1', '2 2']],
  ['\n\r\n1\n\n2', ['3 1', '5 2']],
  ['1\r2\n3\r', ['1 1\r2', '2 3']],
  ['1\0\xff\n2', ['1 1\0\xff', '2 2']],
  ['\xef\xbb\xbf1\n\xef\xbb\xbf2', ['1 1', '2 \xef\xbb\xbf2']],
  ['\xef\xbb\xbf\r\n1', ['2 1']],
  ['twelve bytes\r\nthirteen long\r\n3\n', ['1 twelve bytes', '2 too long', '3 3']],
  ['far longer than any line may be\n2', ['1 too long', '2 2']],
])('readLines splits %j into %j', async (file, expected) => {
  expect(await readFileLines(Buffer.from(file, 'latin1'))).toEqual(expected);
});

it('readLines yields the same lines for any chunking', async () => {
  const piece = fc.constantFrom('1', 'é', '\n', '\r\n', '\r', '\uFEFF', 'eleven and more');
  await fc.assert(
    fc.asyncProperty(
      fc.array(piece, { maxLength: 20 }),
      fc.array(fc.nat(200), { maxLength: 10 }),
      async (pieces, boundaries) => {
        const file = Buffer.from(pieces.join(''));

        expect(await readFileLines(file, boundaries)).toEqual(await readFileLines(file));
      },
    ),
  );
});

it('readLines buffers no more of a line than the limit', async () => {
  let bufferedBytes = 0;
  function* generateGibibyte(): Generator<Buffer> {
    for (let count = 0; count < 1024; count++) yield Buffer.alloc(2 ** 20, 'x');
    bufferedBytes = process.memoryUsage().arrayBuffers;
  }

  const lines = await Readable.from(
    readLines(Readable.from(generateGibibyte()), MAX_LINE_BYTES),
  ).toArray();

  expect(lines).toEqual([{ number: 1, bytes: undefined }]);
  expect(bufferedBytes).toBeLessThan(2 ** 29);
});

import { Readable } from 'node:stream';
import fc from 'fast-check';
import {
  type ArchivedPlant,
  csvHeader,
  type Format,
  formats,
  importPlants,
  type PlantsArchive,
  type Rejection,
  toCsv,
  toNdjson,
} from '../../src/data';

const text = fc
  .string({ unit: 'binary', maxLength: 12 })
  .filter((string) => !string.includes('\0'));
const special = fc
  .array(
    fc.constantFrom('"', ',', '\n', '\r', '\r\n', '\\', ' ', '\u2028', '\uFEFF', 'é', '🌿', 'a'),
  )
  .map((parts) => parts.join(''));
const plant = fc.record(
  {
    id: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
    name: fc.oneof(text, special),
    tag: fc.oneof(text, special),
    idempotencyKey: fc.stringMatching(/^[0-9a-f]{64}$/),
  },
  { requiredKeys: ['id', 'name'] },
);

/** What an archive would be given by an import of a file that comes in pieces. */
async function imported(
  file: Buffer,
  format: Format,
  cuts: readonly number[] = [],
): Promise<{ plants: ArchivedPlant[]; rejections: Rejection[] }> {
  const plants: ArchivedPlant[] = [];
  const rejections: Rejection[] = [];
  const ends = [...cuts.map((cut) => cut % (file.length + 1)).sort((a, b) => a - b), file.length];
  const chunks = ends.map((end, at) => file.subarray(ends[at - 1] ?? 0, end));
  const archive = {
    write(batch: readonly ArchivedPlant[]) {
      plants.push(...batch);
      return Promise.resolve({ stored: batch.length, present: 0, conflicts: [] });
    },
  } as unknown as PlantsArchive;
  const batches = importPlants(Readable.from(chunks), { format, archive });
  for await (const batch of batches) rejections.push(...batch.rejections);
  return { plants, rejections };
}

describe.each(formats)('a file in the format %s', (format) => {
  it('is read as it was written, in whatever pieces it comes', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(plant, { maxLength: 20 }),
        fc.array(fc.nat(4000), { maxLength: 10 }),
        async (plants, cuts) => {
          const file = Buffer.from(format === 'csv' ? csvHeader + toCsv(plants) : toNdjson(plants));

          const { plants: read, rejections } = await imported(file, format, cuts);

          expect(rejections).toEqual([]);
          expect(read.map((each) => ({ ...each }))).toEqual(plants);
        },
      ),
    );
  });

  it('gives every record with a fault its line and its bytes, and goes on', async () => {
    const good = format === 'csv' ? '1,"a\nb",' : '{"id":1,"name":"a\\nb"}';
    const start = format === 'csv' ? 'id,name,tag\r\n' : '\uFEFF\r\n';
    const invalid = Buffer.from([0x7b, 0xff, 0x7d]);
    const file = Buffer.concat([
      Buffer.from(`${start}${good}\r\n\n`),
      invalid,
      Buffer.from(`\n${good}`),
    ]);

    const { plants, rejections } = await imported(file, format, [1, 2, 20, 21, 22]);

    const line = format === 'csv' ? 5 : 4;
    expect(plants.map(({ id, name }) => [id, name])).toEqual([
      [1n, 'a\nb'],
      [1n, 'a\nb'],
    ]);
    const reason = `Not ${format === 'csv' ? 'CSV' : 'JSON'}: it is not UTF-8.`;
    expect(rejections).toEqual([{ line, raw: invalid, reason }]);
  });
});

describe('a CSV file with faults', () => {
  const line = fc.oneof(
    fc.constantFrom(
      ...['1,x,t', '2,"a\nb",', '3,"c""d\r\n,e",""', '4,5" pot,', '5,"x" y,t', '', '6,"open'],
    ),
    fc
      .array(fc.constantFrom('"', ',', '7', 'a', '\r'), { maxLength: 6 })
      .map((parts) => parts.join('')),
  );

  it('gives the same records in whatever pieces it comes, and rejects lines unchanged', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(line, { maxLength: 8 }),
        fc.array(fc.nat(100), { maxLength: 10 }),
        async (lines, cuts) => {
          const file = Buffer.from(['id,name,tag', ...lines].join('\n'));

          const whole = await imported(file, 'csv');
          const { plants, rejections } = await imported(file, 'csv', cuts);

          expect({ plants, rejections }).toEqual(whole);
          const all = file.toString().split('\n');
          for (const { line: first, raw } of rejections) {
            const lines = all.slice(first - 1, first - 1 + String(raw).split('\n').length);
            expect([raw, `${String(raw)}\r`]).toContain(lines.join('\n'));
          }
        },
      ),
    );
  });

  it('loses no more than the line of a quotation mark too much', async () => {
    const file = 'id,name,tag\n1,5" pot,\n2,"x" y,\n3,"open,\n4,Fern,\n5,"Moss\ngreen",\n';

    const { plants, rejections } = await imported(Buffer.from(file), 'csv');

    expect(plants.map(({ id, name }) => [id, name])).toEqual([
      [4n, 'Fern'],
      [5n, 'Moss\ngreen'],
    ]);
    expect(rejections.map(({ line: at, raw }) => [at, raw])).toEqual([
      [2, '1,5" pot,'],
      [3, '2,"x" y,'],
      [4, '3,"open,'],
    ]);
  });
});

it.each([
  ['{"id":9007199254740993,"name":""}', 9007199254740993n],
  ['{"name":"x","id":1E2}', 100n],
  [
    '{"id":"7","name":"x"}',
    'Not a NewPlant: id must be a JSON number, an integer from -9223372036854775808 to 9223372036854775807.',
  ],
  [
    '{"id":1.5}',
    'Not a NewPlant: id must be an integer from -9223372036854775808 to 9223372036854775807; name is required.',
  ],
  ['{"id":1,"name":"x","tag":null}', 'Not a NewPlant: tag must be a string.'],
  ['[1]', 'Not a NewPlant: the line must be a JSON object.'],
  [
    '{"id":1,"name":"x","idempotencyKey":"AB"}',
    'Not a NewPlant: idempotencyKey must be 64 lowercase hexadecimal digits.',
  ],
])('the JSON line %s is read as %s', async (line, expected) => {
  const { plants, rejections } = await imported(Buffer.from(line), 'ndjson');

  expect(plants[0]?.id ?? rejections[0]?.reason).toBe(expected);
});

it.each([
  ['1,x,', { id: 1n, name: 'x' }],
  ['1,x,""', { id: 1n, name: 'x', tag: '' }],
  ['1,"x ""y""\n,z",t', { id: 1n, name: 'x "y"\n,z', tag: 't' }],
  ['1,x', 'Not CSV: the line has 2 fields, but the header has 3.'],
  ['1,,t', 'Not a NewPlant: name is required.'],
  [
    'x,,t',
    'Not a NewPlant: id must be an integer from -9223372036854775808 to 9223372036854775807; name is required.',
  ],
  ['1,5" pot,t', 'Not CSV: a field that contains a quotation mark must be quoted.'],
  ['1,"x" y,t', 'Not CSV: a quoted field must be followed by a comma or the end of the line.'],
  ['1,"x,t', 'Not CSV: a quoted field has no closing quotation mark.'],
])('the CSV record %j is read as %j', async (record, expected) => {
  const { plants, rejections } = await imported(Buffer.from(`id,name,tag\n${record}`), 'csv');

  expect(plants[0] ?? rejections[0]?.reason).toEqual(expected);
});

it.each([
  ['', 'The first line must be a header with the column "id".'],
  ['id,tag\n', 'The first line must be a header with the column "name".'],
  ['id,name,name\n', 'The header has the same column twice.'],
])('the CSV file %j is refused', async (file, message) => {
  await expect(imported(Buffer.from(file), 'csv')).rejects.toThrow(message);
});

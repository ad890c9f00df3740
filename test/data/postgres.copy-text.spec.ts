import fc from 'fast-check';
import type { PlantLines } from '../../src/plants/archives';
import { CopyTextReader } from '../../src/plants/persistence/postgres/postgres.copy-text';

const text = fc
  .array(
    fc.oneof(
      fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
      fc.constantFrom('\\', '"', '\\N', '\\n', '\t', '\n', '\b', '\v', '\x01', '\x7f', '\u2028'),
    ),
  )
  .map((parts) => parts.join('').replaceAll('\0', ''));
const plant = fc.record(
  {
    id: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
    name: text,
    tag: text,
    idempotencyKey: fc.stringMatching(/^[0-9a-f]{64}$/),
  },
  { requiredKeys: ['id', 'name'] },
);

const LETTERS: Record<string, string> = {
  '\b': 'b',
  '\f': 'f',
  '\n': 'n',
  '\r': 'r',
  '\t': 't',
  '\v': 'v',
  '\\': '\\',
};

/** Lines as they were given, before others are. */
function kept(lines: PlantLines | undefined): { count: number; text: string } | undefined {
  return lines && { count: lines.count, text: Buffer.from(lines.bytes).toString() };
}

/** What the server sends for a value. */
function copied(value: string | undefined): string {
  if (value === undefined) return '\\N';
  return value.replace(/[\b\f\n\r\t\v\\]/g, (character) => `\\${LETTERS[character]}`);
}

it.each([true, false])('reads plants in whatever pieces they come; with keys: %s', (hasKeys) => {
  fc.assert(
    fc.property(fc.array(plant), fc.array(fc.nat(4000)), (plants, cuts) => {
      const rows = plants.map(({ id, name, tag, idempotencyKey }) =>
        [`${id}`, name, tag, ...(hasKeys ? [idempotencyKey] : [])].map(copied).join('\t'),
      );
      const bytes = Buffer.from(rows.map((row) => `${row}\n`).join(''));
      const ends = [...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length];
      ends.sort((one, other) => one - other);

      const reader = new CopyTextReader();
      const lines = ends.flatMap((end, at) => {
        const chunk = bytes.subarray(ends[at - 1] ?? 0, end);
        // Every second time, as when there are many.
        return [kept(reader.read(chunk)), ...(at % 2 ? [kept(reader.take())] : [])];
      });
      lines.push(kept(reader.take()));

      const expected = plants.map(({ id, idempotencyKey, ...rest }) => {
        const strings = hasKeys && idempotencyKey ? { ...rest, idempotencyKey } : rest;
        return `{"id":${id},${JSON.stringify(strings).slice(1)}\n`;
      });
      const given = lines.filter((each) => each !== undefined);
      expect(given.map(({ text }) => text).join('')).toBe(expected.join(''));
      expect(given.reduce((sum, { count }) => sum + count, 0)).toBe(plants.length);
      for (const each of given) expect(each.text.split('\n')).toHaveLength(each.count + 1);
    }),
  );
});

it('gives many plants away before the end', () => {
  const reader = new CopyTextReader();
  const row = Buffer.from(`1\t${'a'.repeat(1000)}\tb\n`);

  let given = 0;
  for (let at = 0; at < 1000; at++) given += reader.read(row)?.count ?? 0;

  expect(given).toBeGreaterThan(700);
});

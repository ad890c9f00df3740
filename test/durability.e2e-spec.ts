import { randomInt } from 'node:crypto';
import { join } from 'node:path';
import fc from 'fast-check';
import { TOKEN } from './support/application';
import { makeFolder, removeFolder } from './support/folder';
import { ServiceProcess } from './support/service-process';
import { integrity, readPlants } from './support/sqlite';

const WRITERS = 32;

interface Creation {
  readonly id: number;
  readonly name: string;
  outcome: 'acknowledged' | 'refused' | 'unknown';
}

describe('the service under kill -9', () => {
  const seed = Number(process.env.SEED ?? randomInt(2 ** 31));
  let folder: string;
  beforeEach(() => {
    folder = makeFolder();
  });
  afterEach(() => {
    removeFolder(folder);
  });

  it(`loses nothing that it acknowledged and keeps nothing that it refused (SEED=${seed})`, async () => {
    const creations: Creation[] = [];
    const lifetimes = fc.sample(fc.integer({ min: 200, max: 500 }), { seed, numRuns: 3 });

    for (const [round, lifetime] of lifetimes.entries()) {
      const service = await ServiceProcess.start(folder);
      const url = new URL('/plants', await service.url());
      const writers = Array.from({ length: WRITERS }, (_, writer) =>
        writeUntilGone(url, `${round}-${writer}`, ids(round, writer), creations),
      );
      setTimeout(() => {
        service.kill('SIGKILL');
      }, lifetime);
      await Promise.all([...writers, service.ended]);
    }

    const stored = new Map(
      readPlants(join(folder, 'data/plants.db')).map(({ id, name }) => [Number(id), name]),
    );
    const acknowledged = creations.filter(({ outcome }) => outcome === 'acknowledged');
    const refused = creations.filter(({ outcome }) => outcome === 'refused');
    expect(acknowledged.length).toBeGreaterThan(100);
    expect(refused.length).toBeGreaterThan(10);
    expect(acknowledged.filter(({ id, name }) => stored.get(id) !== name)).toEqual([]);
    expect(refused.filter(({ id, name }) => stored.get(id) === name)).toEqual([]);
    expect(integrity(join(folder, 'data/plants.db'))).toBe('ok');
  }, 60_000);
});

/** The ids a writer asks for: its own, and every third time one that the other writers want too. */
function* ids(round: number, writer: number): Generator<number, never> {
  const shared = round * 10_000_000;
  for (let count = 0; ; count++) {
    yield count % 3 === 0 ? shared + count : shared + 100_000 * (writer + 1) + count;
  }
}

/** Creates one plant after the other until the service is gone. */
async function writeUntilGone(
  url: URL,
  writer: string,
  writerIds: Generator<number, never>,
  creations: Creation[],
): Promise<void> {
  for (;;) {
    const id = writerIds.next().value;
    const creation: Creation = { id, name: `${writer}-${id}`, outcome: 'unknown' };
    creations.push(creation);
    try {
      const response = await fetch(url, {
        method: 'POST',
        headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
        body: JSON.stringify({ id, name: creation.name }),
      });
      creation.outcome = response.ok ? 'acknowledged' : 'refused';
      await response.arrayBuffer();
    } catch {
      return;
    }
  }
}

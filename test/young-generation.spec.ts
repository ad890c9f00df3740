import { join } from 'node:path';
import { run } from './support/run';

/**
 * Keeps 8 MiB of objects alive and replaces them one by one, a little each turn, with a server that has no
 * connections and then more than a few. Prints the mebibytes of a semi-space after each.
 */
const FILL_YOUNG_GENERATION = `
  const { once } = require('node:events');
  const { connect, createServer } = require('node:net');
  const { setImmediate } = require('node:timers/promises');
  const { getHeapSpaceStatistics } = require('node:v8');
  const { limitYoungGeneration, tuneV8 } = require(process.argv[1]);

  const alive = [];
  async function fill() {
    for (let count = 0; count < 100_000; count++) {
      alive[count % 8192] = new Array(128).fill(count);
      if (count % 512 === 0) await setImmediate();
    }
    const young = getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space');
    console.log(Math.round((young.space_used_size + young.space_available_size) / 2 ** 20));
  }

  (async () => {
    const server = createServer().listen(0, '127.0.0.1');
    tuneV8();
    limitYoungGeneration(server);
    await once(server, 'listening');
    await fill();
    for (let count = 0; count < 257; count++) {
      await once(connect(server.address().port, '127.0.0.1'), 'connect');
    }
    await fill();
    process.exit();
  })();`;

describe('the young generation of the heap', () => {
  it('stays at half of what V8 allows until many connections are open', async () => {
    const v8 = join(__dirname, '../dist/v8/index.js');

    const { stdout, stderr } = await run(process.execPath, ['-e', FILL_YOUNG_GENERATION, v8]);

    expect(stderr).toBe('');
    expect(stdout).toBe('16\n32\n');
  });
});

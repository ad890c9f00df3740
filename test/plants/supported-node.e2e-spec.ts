import { join } from 'node:path';
import { type Run, run } from '../support/run';

const FILE = join(__dirname, '../../dist/plants/supported-node.js');

/** Loads the file as a Node.js of another version would. */
function loadOn(version: string): Promise<Run> {
  const pretend = `Object.defineProperty(process.versions, 'node', { value: '${version}' })`;
  return run(process.execPath, ['-e', `${pretend}; require(${JSON.stringify(FILE)})`]);
}

describe('the module', () => {
  it.each(['22.22.3', '22.23.0', '24.15.0', '26.0.0', '27.1.0'])('loads on %s', async (version) => {
    expect(await loadOn(version)).toEqual({ code: 0, stdout: '', stderr: '' });
  });

  it.each(['20.19.0', '22.16.0', '22.22.2', '23.11.1', '24.14.1', '25.9.0'])(
    'does not load on %s, and says what it needs',
    async (version) => {
      const { code, stderr } = await loadOn(version);

      expect(code).toBe(1);
      expect(stderr).toContain(
        'The module of plant-store needs Node.js 22.22.3 or a newer 22, 24.15',
      );
    },
  );
});

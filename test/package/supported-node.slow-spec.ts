import { join } from 'node:path';
import { engines } from '../../package.json';
import { useFolder } from '../support/folder';
import { describeWith, run, shell } from '../support/run';
import { TestProcess } from '../support/test-process';
import { nodeOf, PROJECT } from './packed';

/** The service on Node.js of other versions. They come from the registry, so it is no part of npm test. */

const MAIN = join(PROJECT, 'dist/main.js');

const home = useFolder();

describe('the service', () => {
  describeWith('curl', () => {
    it.each(engines.node.match(/[\d.]+/g) ?? [])(
      'stores a plant on Node.js %s',
      async (version) => {
        const env = { PATH: process.env.PATH, PORT: '0' };
        const service = new TestProcess([nodeOf(version), MAIN], { cwd: home, env });
        try {
          const [curl] = await service.says(/^curl .*$/m, 'stderr');

          expect((await shell(curl)).stdout).toMatch(/\r\n\r\n{"name":"Fern"}$/);
        } finally {
          await service.end();
        }
      },
    );
  });

  it.each(['20.19.0', '22.23.2', '24.18.0', '25.9.0', '26.5.0'])(
    'exits with one error message on Node.js %s',
    async (version) => {
      const node = nodeOf(version);

      expect(await run(node, [MAIN])).toEqual({
        code: 1,
        stdout: '',
        stderr: `The Plant Store requires Node.js ${engines.node}. This is v${version}, ${node}.\n`,
      });
    },
  );
});

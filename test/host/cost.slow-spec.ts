/** @alone It measures. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { printFigures, quantile } from '../support/figures';
import { makeFolder, removeFolder } from '../support/folder';
import {
  Host,
  type HostKind,
  type Installation,
  installHost,
  packPackage,
  withTokens,
} from './hosts';

/** What the module costs the other routes of a host: rounds with and without it, side by side. */

const CONNECTIONS = 32;
const ROUNDS = 8;
/** Milliseconds. */
const ROUND = 1500;

describe('the other routes of a host', () => {
  let folder: string;
  let installation: Installation;
  beforeAll(() => {
    folder = makeFolder();
    installation = installHost(folder, 'nest12', packPackage(folder));
  }, 240_000);
  afterAll(() => {
    removeFolder(folder);
  });

  it.each(['express', 'fastify'] as const)(
    'are as fast with the module, on %s',
    async (platform) => {
      const kind: HostKind = { nest: 12, platform, modules: 'mjs' };
      const alone = await Host.start(installation.home, kind);
      const host = await Host.start(installation.home, kind, withTokens);
      await Promise.all([countAnswers(alone.url), countAnswers(host.url)]);

      const rates: number[] = [];
      const ratios: number[] = [];
      for (let round = 0; round < ROUNDS; round++) {
        const without = await countAnswers(alone.url);
        const withModule = await countAnswers(host.url);
        rates.push((without * 1000) / ROUND);
        ratios.push(withModule / without);
      }
      await Promise.all([alone.stop(), host.stop()]);

      printFigures(`POST of the host on ${platform}`, {
        'requests/s without': Math.round(quantile(rates, 0.5)),
        'with the module': quantile(ratios, 0.5).toFixed(3),
      });
      expect(quantile(ratios, 0.5)).toBeGreaterThan(0.9);
    },
    120_000,
  );
});

/** Posts JSON to a route of the host for a while, and counts the answers. */
async function countAnswers({ hostname, port }: URL): Promise<number> {
  const body = '{"name":"Oak"}';
  const message = `POST /api/v1/trees HTTP/1.1\r\nHost: host\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  const endsAt = performance.now() + ROUND;
  let answers = 0;
  const sockets = Array.from({ length: CONNECTIONS }, () => {
    const socket = connect(Number(port), hostname, () => socket.write(message));
    // An answer comes in one piece.
    socket.on('data', () => {
      answers++;
      if (performance.now() < endsAt) socket.write(message);
      else socket.end();
    });
    return socket;
  });
  await Promise.all(sockets.map((socket) => once(socket, 'close')));
  return answers;
}

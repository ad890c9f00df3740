/** Passes sockets to the service as systemd does. Some tests need python3. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer, type Server } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { TOKEN } from '../support/application';
import { findFreePort } from '../support/free-port';
import { listen } from '../support/listen';
import { expectOutcomesMatch, Load } from '../support/load';
import { readMetric } from '../support/metrics';
import { CLI_PATH } from '../support/plant-store';
import { programEnvironment } from '../support/run-folder';
import { describeWith } from '../support/run';
import { useServiceHome } from '../support/service-process';
import { until } from '../support/until';

/** Starts a service with a socket as systemd does: `exec` keeps the process id in LISTEN_PID. */
const START = 'LISTEN_FDS=1 LISTEN_PID=$$ exec "$0" "$@"';
/** `npm run test:faults` sets a larger number. */
const RESTARTS = Number(process.env.KILLS ?? 1);
/** Keeps the socket open, and restarts the service when it exits. */
const SUPERVISOR = `for run in $(seq ${RESTARTS + 1}); do sh -c '${START}' "$@"; done`;

/** Creates a Python program that runs a program with a socket of a kind, as systemd does. */
const createStarter = (kind: string): string => `import os, socket, sys
created = socket.socket(socket.${kind})
address = 'plants.sock' if created.family == socket.AF_UNIX else ('127.0.0.1', 0)
created.bind(address)
if created.type == socket.SOCK_STREAM: created.listen()
os.dup2(created.fileno(), 3)
# Without it, a socket that had the descriptor 3 already would be closed.
os.set_inheritable(3, True)
os.environ.update(LISTEN_FDS='1', LISTEN_PID=str(os.getpid()))
os.execvp(sys.argv[1], sys.argv[1:])`;

describe('a service with an inherited socket', () => {
  const home = useServiceHome();
  let supervisors: ChildProcess[] = [];
  let output = '';
  afterEach(() => {
    for (const { pid = NaN, exitCode } of supervisors) {
      // Kills the process group, which includes the service.
      if (exitCode === null) process.kill(-pid, 'SIGKILL');
    }
    supervisors = [];
    output = '';
  });

  function supervise(socket: Server, healthPort: number): void {
    const { fd } = (socket as unknown as { readonly _handle: { readonly fd: number } })._handle;
    const command = ['-c', SUPERVISOR, 'sh', process.execPath, CLI_PATH];
    const supervisor = spawn('sh', command, {
      cwd: home.folder,
      // The service ignores PORT because it has a socket.
      env: {
        ...programEnvironment(),
        AUTH_TOKENS: TOKEN,
        PORT: '1',
        HEALTH_PORT: String(healthPort),
      },
      stdio: ['ignore', 'pipe', 'inherit', fd],
      detached: true,
    });
    supervisor.stdout?.on('data', (chunk: Buffer) => {
      output += chunk.toString();
    });
    supervisors.push(supervisor);
  }

  /** Returns the process id of each service that has listened. */
  const pids = (): number[] =>
    [...output.matchAll(/"pid":(\d+).*Listening on http:/g)].map(([, pid]) => Number(pid));

  it.each([
    ['one service', 1],
    ['one of two services', 2],
  ])(
    `accepts every connection while %s is restarted ${RESTARTS} times`,
    async (_name, services) => {
      const socket = createServer();
      const { port } = await listen(socket);
      const healthPorts = [await findFreePort(), await findFreePort()].slice(0, services);
      for (const healthPort of healthPorts) {
        supervise(socket, healthPort);
        await until(() => pids().length === supervisors.length);
      }
      // From now on, only the supervisors and the services have the socket.
      socket.close();
      const loads: Load[] = [];
      const startLoad = (): void => {
        const urls = [new URL(`http://127.0.0.1:${port}`)];
        loads.push(Load.startCompeting(urls, 16, { round: loads.length, pause: 5 }));
      };
      startLoad();
      const countBatches = (healthPort: number): Promise<number> =>
        readMetric(new URL(`http://127.0.0.1:${healthPort}`), 'plant_store_batch_size_count');
      let count = 0;
      let isOver = false;
      /** Opens connections. Throws if one is refused. */
      const open = async (): Promise<void> => {
        while (!isOver) {
          const client = connect(Number(port), '127.0.0.1');
          await once(client, 'connect');
          client.resetAndDestroy();
          count++;
          await setTimeout(5);
        }
      };
      const clients = Promise.all(Array.from({ length: 16 }, open));

      for (let start = 1; start <= RESTARTS; start++) {
        const before = count;
        await until(() => count > before + 100);
        process.kill(pids().at(-1) ?? NaN, 'SIGTERM');
        await until(() => pids().length === services + start);
      }
      isOver = true;
      await clients;
      // One service may accept all connections that are opened at the same moment.
      await until(async () => {
        await loads.at(-1)?.stop();
        startLoad();
        return (await Promise.all(healthPorts.map(countBatches))).every((batches) => batches > 0);
      });
      await loads.at(-1)?.stop();
      const { status } = await fetch(`http://127.0.0.1:${port}/health/ready`);
      process.kill(pids().at(-1) ?? NaN, 'SIGTERM');
      await until(() => supervisors.at(-1)?.exitCode === 0);

      expect(output).toContain(`Listening on http://127.0.0.1:${port}`);
      expect(status).toBe(200);
      expectOutcomesMatch(
        loads.flatMap(({ creations }) => creations),
        home.plants(),
      );
    },
  );

  describeWith('python3', () => {
    it.each([
      ['AF_UNIX, socket.SOCK_STREAM', 'it is a Unix socket'],
      ['AF_UNIX, socket.SOCK_DGRAM', 'listen EINVAL: invalid argument'],
      ['AF_INET, socket.SOCK_DGRAM', 'listen EINVAL: invalid argument'],
    ])(
      'exits with one error message when the socket is of another kind: %s',
      async (kind, reason) => {
        const service = home.spawn({ AUTH_TOKENS: TOKEN }, ['python3', '-c', createStarter(kind)]);

        expect(await service.ended).toEqual({ code: 1, signal: null });
        expect(service.stderr).toBe(
          `The socket that the service manager passes (LISTEN_FDS) cannot be used: ${reason}. Set ListenStream to a port, or to an IP address and a port.\n`,
        );
      },
    );
  });

  it('exits with one error message when no socket is passed', async () => {
    const service = home.spawn({ AUTH_TOKENS: TOKEN }, ['sh', '-c', START]);

    expect(await service.ended).toEqual({ code: 1, signal: null });
    expect(service.stderr).toMatch(
      /^The socket that the service manager passes \(LISTEN_FDS\) cannot be used: .*\. Set ListenStream .*\n$/,
    );
  });

  const NOT_A_NUMBER = 'LISTEN_FDS must be the number of sockets that the service manager passes.';

  it.each([
    [
      '2',
      'The service manager passes 2 sockets (LISTEN_FDS), but the service listens on one: set ListenStream once, and use HEALTH_PORT for another port.',
    ],
    ['x', `${NOT_A_NUMBER} It is "x".`],
    ['-1', `${NOT_A_NUMBER} It is "-1".`],
    ['1.5', `${NOT_A_NUMBER} It is "1.5".`],
  ])('exits with one error message for LISTEN_FDS=%s', async (count, message) => {
    const wrapper = ['sh', '-c', START.replace('FDS=1', `FDS=${count}`)];
    const service = home.spawn({ AUTH_TOKENS: TOKEN }, wrapper);

    expect(await service.ended).toEqual({ code: 1, signal: null });
    expect(service.stderr).toBe(`${message}\n`);
  });

  it('listens on PORT when LISTEN_PID is that of another process', async () => {
    const service = await home.start({ LISTEN_FDS: '1', LISTEN_PID: String(process.pid) });

    expect(await service.getStatus('/health/ready')).toBe(200);
  });
});

import { once } from 'node:events';
import { get as getHttp, type IncomingMessage } from 'node:http';
import { get as getHttps } from 'node:https';
import type { Command } from 'commander';
import { OperatorError } from '../plants/program';
import { readEnvironment } from '../server/settings/environment';

/** The addresses that a service listens on everywhere, and where it is reached from its own machine. */
const LOOPBACK: Partial<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' };

export function addHealth(program: Command): void {
  program
    .command('health')
    .summary('ask the running service whether it is live or ready')
    .description(
      'Asks the service that the same environment configures (HOST, HEALTH_PORT or PORT, TLS_CERT) whether it is live. The exit code is 1 when it is not, or does not answer within 5 seconds.',
    )
    .option('--ready', 'ask whether it is ready, that is, whether its store accepts plants')
    .action(({ ready }: { ready?: true }) => askHealth(ready ? 'ready' : 'live'));
}

async function askHealth(word: 'live' | 'ready'): Promise<void> {
  const settings = readEnvironment({ ...process.env, NODE_ENV: undefined });
  const { host, tls, healthPort: port = settings.port } = settings;
  const get: typeof getHttps = tls ? getHttps : getHttp;
  const request = get({
    host: LOOPBACK[host] ?? host,
    port,
    path: `/health/${word}`,
    agent: false,
    signal: AbortSignal.timeout(5000),
    // The certificate need not name this address. Nothing secret is sent.
    rejectUnauthorized: false,
  });
  const [{ statusCode }] = (await once(request, 'response').catch((cause: unknown) => {
    const { code, message } = cause as NodeJS.ErrnoException;
    const reason = `The service at ${host} port ${port} does not answer: ${code ?? message}.`;
    throw new OperatorError(reason, { cause });
  })) as [IncomingMessage];
  request.destroy();
  if (statusCode !== 200) {
    throw new OperatorError(`The service is not ${word}: it answered with status ${statusCode}.`);
  }
  console.log(word);
}

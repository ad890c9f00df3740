import { request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import type { Command } from 'commander';
import { OperatorError } from '../errors';

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
    .addHelpText('after', '\nExample:\n  plant-store health --ready')
    .action(({ ready: isReadyAsked }: { ready?: boolean }) =>
      askHealth(isReadyAsked ? 'ready' : 'live'),
    );
}

async function askHealth(word: 'live' | 'ready'): Promise<void> {
  const { readEnvironment } = await import('../config/index.js');
  const settings = readEnvironment({ ...process.env, NODE_ENV: undefined });
  const { host, tls, healthPort: port = settings.port } = settings;
  if (port === 0) {
    throw new OperatorError(
      'PORT is 0, so the service listens on a port that only its log names. Set PORT to that port.',
    );
  }
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const request: typeof requestHttps = tls ? requestHttps : requestHttp;
  request({
    host: LOOPBACK[host] ?? host,
    port,
    path: `/health/${word}`,
    agent: false,
    signal: AbortSignal.timeout(5000),
    // The certificate need not name this address. Nothing secret is sent.
    rejectUnauthorized: false,
  })
    .on('error', reject)
    .on('response', (response) => {
      resolve(response.resume().statusCode ?? 0);
    })
    .end();
  const status = await promise.catch((cause: unknown) => {
    const { code, message } = cause as NodeJS.ErrnoException;
    const reason = `The service at ${host} port ${port} does not answer: ${code ?? message}.`;
    throw new OperatorError(reason, { cause });
  });
  if (status !== 200)
    throw new OperatorError(`The service is not ${word}: it answered with status ${status}.`);
  console.log(word);
}

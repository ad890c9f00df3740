import { request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import type { Command } from 'commander';
import { OperatorError } from '../errors';

/** Milliseconds that the service may take for its answer. */
const TIMEOUT = 5000;

/** The addresses that a service listens on everywhere, and where it is reached from its own machine. */
const LOOPBACK: Partial<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' };

/** `plant-store health` */
export function addHealth(program: Command): void {
  program
    .command('health')
    .summary('ask the running service whether it is live or ready')
    .description(
      'Asks the service that the same environment configures (HOST, PORT, TLS_CERT) whether it is live. The exit code is 1 when it is not, or does not answer within 5 seconds.',
    )
    .option('--ready', 'ask whether it is ready, that is, whether its store accepts plants')
    .addHelpText('after', '\nExample:\n  plant-store health --ready')
    .action(({ ready: isReadyAsked }: { ready?: boolean }) =>
      askHealth(isReadyAsked ? 'ready' : 'live'),
    );
}

async function askHealth(word: 'live' | 'ready'): Promise<void> {
  const { readEnvironment } = await import('../config/index.js');
  const { host, port, tls } = readEnvironment({ ...process.env, NODE_ENV: undefined });
  if (port === 0) {
    throw new OperatorError(
      'PORT is 0, so the service listens on a port that only its log names. Set PORT to that port.',
    );
  }
  const options = {
    host: LOOPBACK[host] ?? host,
    port,
    path: `/health/${word}`,
    agent: false as const,
    signal: AbortSignal.timeout(TIMEOUT),
  };

  const { promise, resolve, reject } = Promise.withResolvers<number>();
  // The certificate need not name this address. Nothing secret is sent.
  const request = tls
    ? requestHttps({ ...options, rejectUnauthorized: false })
    : requestHttp(options);
  request.on('error', reject).on('response', (response) => {
    response.resume();
    resolve(response.statusCode ?? 0);
  });
  request.end();

  let status;
  try {
    status = await promise;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw new OperatorError(
      `The service at ${host} port ${port} does not answer: ${code ?? message}.`,
      {
        cause: error,
      },
    );
  }
  if (status !== 200)
    throw new OperatorError(`The service is not ${word}: it answered with status ${status}.`);
  console.log(word);
}

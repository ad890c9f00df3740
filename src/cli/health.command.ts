import { once } from 'node:events';
import { get as getPlain, type IncomingMessage } from 'node:http';
import type { Command } from 'commander';

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

/** Imports nothing of the service, whose start costs many times the processor time and memory. */
export async function askHealth(word: 'live' | 'ready'): Promise<void> {
  const host = read('HOST')?.replace(/^\[(.*)\]$/, '$1') ?? '127.0.0.1';
  const port = read('HEALTH_PORT') ?? read('PORT') ?? 3000;
  const get = read('TLS_CERT') ? (await import('node:https')).get : getPlain;
  const options = {
    host: LOOPBACK[host] ?? host,
    port,
    path: `/health/${word}`,
    agent: false,
    signal: AbortSignal.timeout(5000),
    // The certificate need not name this address. Nothing secret is sent.
    rejectUnauthorized: false,
  };
  try {
    const request = get(options);
    const [{ statusCode }] = (await once(request, 'response')) as [IncomingMessage];
    request.destroy();
    if (statusCode === 200) console.log(word);
    else fail(`The service is not ${word}: it answered with status ${statusCode}.`);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    fail(`The service at ${host} port ${port} does not answer: ${code ?? message}.`);
  }
}

/** As the settings have it: an empty variable counts as not set. */
function read(name: string): string | undefined {
  const text = process.env[name]?.trim();
  return text === '' ? undefined : text;
}

function fail(reason: string): void {
  console.error(reason);
  process.exitCode = 1;
}

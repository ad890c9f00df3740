import { once } from 'node:events';
import { get as getPlain, type IncomingMessage } from 'node:http';
import type { Command } from 'commander';
import { print } from './print';

/** Maps wildcard addresses to the loopback address to connect to. */
const LOOPBACK: Partial<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' };

export function addHealth(program: Command): void {
  program
    .command('health')
    .summary('check whether the running service is live or ready')
    .description(
      'Checks whether the service configured by this environment (HOST, HEALTH_PORT or PORT, TLS_CERT) is live. The exit code is 1 if it is not, or if it does not respond within 5 seconds.',
    )
    .option('--ready', 'check whether it is ready, that is, whether it commits plants in time')
    .action(({ ready }: { ready?: true }) => checkHealth(ready ? 'ready' : 'live'));
}

/**
 * Checks the health of the running service. This file imports no service code, which would take many times
 * the CPU time and memory.
 */
export async function checkHealth(state: 'live' | 'ready'): Promise<void> {
  const host = readVariable('HOST')?.replace(/^\[(.*)\]$/, '$1') ?? '127.0.0.1';
  const port = readVariable('HEALTH_PORT') ?? readVariable('PORT') ?? 3000;
  const get = readVariable('TLS_CERT') ? (await import('node:https')).get : getPlain;
  const options = {
    host: LOOPBACK[host] ?? host,
    port,
    path: `/health/${state}`,
    agent: false,
    signal: AbortSignal.timeout(5000),
    // The certificate need not be valid for this address, because the request contains no secrets.
    rejectUnauthorized: false,
  };
  try {
    const request = get(options);
    const [{ statusCode }] = (await once(request, 'response')) as [IncomingMessage];
    request.destroy();
    if (statusCode === 200) {
      print(`${state}\n`);
      return;
    }
    console.error(`The service is not ${state}: it returned status ${statusCode}.`);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    console.error(`The service at ${host} port ${port} does not respond: ${code ?? message}.`);
  }
  process.exitCode = 1;
}

/** Reads a variable as the service does: an empty one, or a service link of Kubernetes, counts as not set. */
function readVariable(name: string): string | undefined {
  const text = process.env[name]?.trim();
  return text === '' || /^(?:tcp|udp|sctp):/.test(text ?? '') ? undefined : text;
}

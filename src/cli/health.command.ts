import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { get as getPlain, type IncomingMessage } from 'node:http';

/**
 * Checks the health of the running service. This file imports no service code, which would take many times
 * the CPU time and memory.
 */
export async function checkHealth(state: 'live' | 'ready'): Promise<void> {
  const host = readVariable('HOST')?.replace(/^\[(.*)\]$/, '$1') ?? '127.0.0.1';
  const port = readVariable('HEALTH_PORT') ?? readVariable('PORT') ?? 3000;
  const get = readVariable('TLS_CERT') ? (await import('node:https')).get : getPlain;
  const options = {
    host,
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
    if (statusCode !== 200) throw new Error(`it returned status ${statusCode}`);
    writeFileSync(1, `${state}\n`);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    console.error(`The health check of ${host} port ${port} failed: ${message || code}.`);
    process.exitCode = 1;
  }
}

/** Reads a variable as the service does: an empty one counts as not set. */
function readVariable(name: string): string | undefined {
  const text = process.env[name]?.trim();
  return text === '' ? undefined : text;
}

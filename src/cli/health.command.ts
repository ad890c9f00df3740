import { once } from 'node:events';
import { get as getPlain, type IncomingMessage } from 'node:http';
import { readText } from '../server/settings/variable-text';
import { print } from './print';

/** Checks the health of the running service. Importing the service would take many times the CPU time and memory. */
export async function checkHealth(state: 'live' | 'ready'): Promise<void> {
  let server = 'the service';
  try {
    // An IPv6 address may be in brackets, as in a URL.
    const host = readText('HOST')?.replace(/^\[(.*)\]$/, '$1') ?? '127.0.0.1';
    const port = readText('HEALTH_PORT') ?? readText('PORT') ?? 3000;
    server = `${host} port ${port}`;
    const get = readText('TLS_CERT') ? (await import('node:https')).get : getPlain;
    const request = get({
      host,
      port,
      path: `/health/${state}`,
      agent: false,
      signal: AbortSignal.timeout(5000),
      // The certificate need not be valid for this address, because the request contains no secrets.
      rejectUnauthorized: false,
    });
    const [{ statusCode }] = (await once(request, 'response')) as [IncomingMessage];
    request.destroy();
    if (statusCode !== 200) throw new Error(`it returned status ${statusCode}`);
    print(state);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    console.error(`The health check of ${server} failed: ${message || code}.`);
    process.exitCode = 1;
  }
}

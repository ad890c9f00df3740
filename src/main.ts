import './node-version';
import { lookup } from 'node:dns/promises';
import { Logger } from '@nestjs/common';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { createApplication } from './application';
import { isAuthConfigured, makeToken, TokenFileError } from './auth';
import { EnvironmentError, readEnvironment, type Settings } from './config';
import { TlsError } from './server';
import { closeOnSignal, tuneV8 } from './operations/process';
import { TracingError } from './operations/tracing';
import { StoreOpenError } from './plants/standalone';

/** Runs the standalone service: reads the environment, starts the host, handles signals. */
async function main(): Promise<void> {
  tuneV8();
  const settings = readEnvironment(process.env);
  if (isAuthConfigured(settings.auth)) {
    await serve(settings);
    return;
  }
  const token = makeToken();
  const app = await serve({ ...settings, auth: { tokens: [token] } });
  console.log(`\nNo AUTH_* set: this token is valid until the service stops. Try it:\n`);
  console.log(`${formatExampleCall(await app.getUrl(), token)}\n`);
}

async function serve(settings: Settings): Promise<NestFastifyApplication> {
  const app = await createApplication(settings);
  closeOnSignal(app, settings, fail);
  // A single address: for a name with several, Fastify creates servers without our settings.
  const { address } = await lookup(settings.host);
  await app.listen(settings.port, address);
  new Logger('PlantStore').log(`Listening on ${await app.getUrl()}`);
  return app;
}

/** Formats a line for a POSIX shell. Its id comes from the clock, so that each start prints a new one. */
function formatExampleCall(url: string, token: string): string {
  const body = JSON.stringify({ id: Date.now(), name: 'Fern', tag: 'shade' });
  return `curl -i ${url}/plants -H 'Authorization: Bearer ${token}' -H 'Content-Type: application/json' -d '${body}'`;
}

function fail(error: unknown): never {
  console.error(isForOperator(error) ? error.message : error);
  process.exit(1);
}

/** Whether the message alone tells an operator what to correct, for example an address in use. */
function isForOperator(error: unknown): error is Error {
  return (
    error instanceof EnvironmentError ||
    error instanceof StoreOpenError ||
    error instanceof TokenFileError ||
    error instanceof TlsError ||
    error instanceof TracingError ||
    (error instanceof Error && 'syscall' in error)
  );
}

// An uncaught error ends the process, as is the default of Node.js; the log says why.
process.on('uncaughtExceptionMonitor', (error) => {
  new Logger('PlantStore').fatal(error);
});
main().catch(fail);

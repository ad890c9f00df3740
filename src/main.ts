import './node-version';
import { lookup } from 'node:dns/promises';
import { Logger } from '@nestjs/common';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { createApplication } from './application';
import { acceptsNothing, makeToken, TokenFileError } from './auth';
import { EnvironmentError, readEnvironment, type Settings } from './config';
import { TlsError } from './server';
import { closeOnSignal, tuneV8 } from './operations/process';
import { TracingError } from './operations/tracing';
import { StoreOpenError } from './plants/standalone';

/** Runs the standalone service as a process: reads the environment, listens, closes on signals. */
async function main(): Promise<void> {
  tuneV8();
  const settings = readEnvironment(process.env);
  if (!acceptsNothing(settings.auth)) {
    await serve(settings);
    return;
  }
  const token = makeToken();
  const app = await serve({ ...settings, auth: { tokens: [token] } });
  console.log(`\nNo AUTH_* set: this token is good until the service stops. Try it:\n`);
  console.log(`${exampleCall(await app.getUrl(), token)}\n`);
}

async function serve(settings: Settings): Promise<NestFastifyApplication> {
  const app = await createApplication(settings);
  closeOnSignal(app, settings, fail);
  // One address only: for a name with several, Fastify creates further servers without our handling.
  const { address } = await lookup(settings.host);
  await app.listen(settings.port, address);
  new Logger('PlantStore').log(`Listening on ${await app.getUrl()}`);
  return app;
}

/** A line for a POSIX shell. The id comes from the clock, so that each start has another one. */
function exampleCall(url: string, token: string): string {
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

// An uncaught exception ends the process; the log says why.
process.on('uncaughtExceptionMonitor', (error) => {
  new Logger('PlantStore').fatal(error);
});
main().catch(fail);

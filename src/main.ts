import './node-version';
import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import { Server as HttpsServer } from 'node:https';
import type { AddressInfo, Server } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { getSystemErrorMessage } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { Logger } from '@nestjs/common';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { createApplication } from './application';
import { isAuthConfigured, makeToken } from './auth';
import { readEnvironment, type Settings } from './config';
import { describeForOperator, OperatorError } from './errors';
import { closeOnSignal, Readiness } from './operations/health';
import { PlantsRepository } from './plants';
import { createHealthServer } from './server';

async function main(): Promise<void> {
  // V8 sees the listeners of the server live long, and so may allocate those of each response in the old
  // generation too (pretenuring): in some starts a third more processor time, and 50 MiB more memory.
  setFlagsFromString('--no-allocation-site-pretenuring');
  const settings = readEnvironment(process.env);
  if (isAuthConfigured(settings.auth)) {
    await serve(settings);
    return;
  }
  const token = makeToken();
  const app = await serve({ ...settings, auth: { tokens: [token] } });
  // Until then a creation can only be refused.
  while (!app.get(Readiness).isReady()) await sleep(500, undefined, { ref: false });
  // Off a terminal, the standard output is for log lines.
  const print = process.stdout.isTTY ? console.log : console.error;
  print(`\nNo AUTH_* variable is set. This token is valid until the service stops. Try it:\n`);
  print(`${formatExampleCall(await app.getUrl(), token)}\n`);
}

async function serve(settings: Settings): Promise<NestFastifyApplication> {
  const app = await createApplication(settings);
  closeOnSignal(app, settings, fail);
  const { host, port, healthPort } = settings;
  await listen('PORT', host, port, (address) => app.listen(port, address));
  const logger = new Logger('PlantStore');
  logger.log(`Listening on ${boundTo(app.getHttpServer())}`);
  if (healthPort !== undefined) {
    const server = createHealthServer(app.getHttpAdapter().getInstance(), settings);
    await listen('HEALTH_PORT', host, healthPort, (address) =>
      once(server.listen(healthPort, address), 'listening'),
    );
    logger.log(`Health and metrics are also at ${boundTo(server)}`);
  }
  // Bound to all addresses, it has a URL on the loopback interface.
  if (settings.docs) logger.log(`Swagger UI is at ${await app.getUrl()}/docs`);
  const fault = app.get(PlantsRepository, { strict: false }).findFault();
  if (fault) logger.warn(`Not ready, every creation is answered with 503: ${fault.message}`);
  return app;
}

/** @param start begins to listen on an address */
async function listen(
  variable: string,
  host: string,
  port: number,
  start: (address: string) => Promise<unknown>,
): Promise<void> {
  try {
    // A single address: for a name with several, Fastify creates servers without our settings.
    await start((await lookup(host)).address);
  } catch (error) {
    const cause = error as NodeJS.ErrnoException;
    const reason = cause.errno === undefined ? cause.message : getSystemErrorMessage(cause.errno);
    const culprit = ['EADDRINUSE', 'EACCES'].includes(cause.code ?? '') ? variable : 'HOST';
    throw new OperatorError(
      `Cannot listen on ${inUrl(host)}:${port}: ${reason}. Change ${culprit}.`,
      { cause },
    );
  }
}

function boundTo(server: Server): string {
  const { address, port } = server.address() as AddressInfo;
  return `${server instanceof HttpsServer ? 'https' : 'http'}://${inUrl(address)}:${port}`;
}

function inUrl(address: string): string {
  return address.includes(':') ? `[${address}]` : address;
}

/** A line for a POSIX shell. Its id comes from the clock, so that each start prints a new one. */
function formatExampleCall(url: string, token: string): string {
  const body = JSON.stringify({ id: Date.now(), name: 'Fern', tag: 'shade' });
  return `curl -i ${url}/plants -H 'Authorization: Bearer ${token}' -H 'Content-Type: application/json' -d '${body}'`;
}

function fail(error: unknown): never {
  console.error(describeForOperator(error));
  process.exit(1);
}

// An uncaught error ends the process, as is the default of Node.js; the log says why.
process.on('uncaughtExceptionMonitor', (error) => {
  new Logger('PlantStore').fatal(error);
});
main().catch(fail);

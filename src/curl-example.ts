import { setTimeout as sleep } from 'node:timers/promises';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { PLANTS_PATH } from './plants/plants.controller';
import { Readiness } from './server/monitoring/health';

/**
 * Waits until the service is ready. Then prints a `curl` command that creates a plant, for a POSIX shell. Prints
 * to standard error, because standard output is for the log.
 */
export async function printCurlExample(app: NestFastifyApplication, token: string): Promise<void> {
  // A service that is not ready would reject the request.
  while (!app.get(Readiness).isReady()) await sleep(500, undefined, { ref: false });
  // The shell takes the id from the clock, so that the command can be run again.
  const body = `{"id":'$(date +%s)',"name":"Fern"}`;
  console.error(
    `\nNo AUTH_* variable is set, so the service generated a token. It is valid until the service stops. Try it:\n`,
  );
  console.error(
    `curl -i ${await app.getUrl()}/${PLANTS_PATH} -H 'Authorization: Bearer ${token}' -H 'Content-Type: application/json' -d '${body}'\n`,
  );
}

import { setTimeout as sleep } from 'node:timers/promises';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { PLANTS_PATH } from '../../plants/plants.controller';
import { Readiness } from '../watch/health';

/**
 * Prints a line to paste into a POSIX shell that creates a plant, once the service is ready for it. The
 * standard output is for the log.
 */
export async function printTrial(app: NestFastifyApplication, token: string): Promise<void> {
  // A service that is not ready would refuse the creation.
  while (!app.get(Readiness).isReady()) await sleep(500, undefined, { ref: false });
  // The shell takes the id from the clock, so that the line can be pasted again.
  const body = `{"id":'$(date +%s)',"name":"Fern"}`;
  console.error(
    `\nNo AUTH_* variable is set. This token is valid until the service stops. Try it:\n`,
  );
  console.error(
    `curl -i ${await app.getUrl()}/${PLANTS_PATH} -H 'Authorization: Bearer ${token}' -H 'Content-Type: application/json' -d '${body}'\n`,
  );
}

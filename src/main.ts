// These two must be the first imports: a signal is handled from the first moment of the process, and an old Node.js
// ends with one sentence before it loads what it cannot parse.
import './server/process/signals';
import './server/process/versions';

import { Logger } from '@nestjs/common';
import { createApplication } from './app.module';
import { isAuthConfigured } from './plants/auth/auth.options';
import { generateToken } from './plants/auth/token-list';
import { PLANTS_PATH } from './plants/plants.controller';
import { formatForOperator, readEnvironment } from './server/settings/environment';
import { listen } from './server/process/listen';
import { handleShutdown } from './server/process/shutdown';

async function main(): Promise<void> {
  const environment = readEnvironment(process.env);
  const temporaryToken = isAuthConfigured(environment.auth) ? undefined : generateToken();
  const auth = temporaryToken === undefined ? environment.auth : { tokens: [temporaryToken] };
  const settings = { ...environment, auth };
  const app = await createApplication(settings);
  // Before `listen`: from the first request on, a signal closes the service instead of ending it at once.
  handleShutdown(app, settings, exitWithError);
  await listen(app, settings, exitWithError);
  if (temporaryToken !== undefined) printCurlExample(await app.getUrl(), temporaryToken);
}

/** Prints a command for a POSIX shell to standard error, because standard output is for the log. */
function printCurlExample(url: string, token: string): void {
  // The shell takes the id from the clock, so that the command can be run again.
  const body = `{"id":'$(date +%s)',"name":"Fern"}`;
  console.error(`
No AUTH_* variable is set, so the service generated a token. It is valid until the service stops. Try it:

curl -i ${url}/${PLANTS_PATH} -H 'Authorization: Bearer ${token}' -H 'Content-Type: application/json' -d '${body}'
`);
}

function exitWithError(error: unknown): never {
  console.error(formatForOperator(error));
  process.exit(1);
}

// Logs an uncaught error. Node.js then ends the process.
process.on('uncaughtExceptionMonitor', (error) => {
  new Logger('PlantStore').fatal(error);
});
main().catch(exitWithError);

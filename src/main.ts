import './server/http/signals';
import './server/settings/versions';
import { Logger } from '@nestjs/common';
import { createApplication } from './app.module';
import { withTemporaryToken } from './plants/auth/auth.options';
import { printCurlExample } from './curl-example';
import { formatForOperator, readEnvironment } from './server/settings/environment';
import { listen } from './server/http/listen';
import { handleShutdown } from './server/http/shutdown';

/** Runs the service with the settings of the environment. */
async function main(): Promise<void> {
  const environment = readEnvironment(process.env);
  const { auth, temporaryToken } = withTemporaryToken(environment.auth);
  const settings = { ...environment, auth };
  const app = await createApplication(settings);
  handleShutdown(app, settings, exitWithError);
  await listen(app, settings, exitWithError);
  if (temporaryToken !== undefined) await printCurlExample(app, temporaryToken);
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

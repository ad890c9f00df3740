import './server/http/signals';
import './server/settings/versions';
import { Logger } from '@nestjs/common';
import { createApplication } from './app.module';
import { isAuthConfigured } from './plants/auth/auth.options';
import { generateToken } from './plants/auth/token-list';
import { printCurlExample } from './curl-example';
import { formatForOperator, readEnvironment } from './server/settings/environment';
import { listen } from './server/http/listen';
import { handleShutdown } from './server/http/shutdown';

/** Runs the service with the settings of the environment. */
async function main(): Promise<void> {
  const environment = readEnvironment(process.env);
  const temporaryToken = isAuthConfigured(environment.auth) ? undefined : generateToken();
  const auth = temporaryToken === undefined ? environment.auth : { tokens: [temporaryToken] };
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

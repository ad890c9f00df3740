import process from 'node:process';
import { setFlagsFromString } from 'node:v8';
import { createApplication } from '../dist/app.module.js';
import { PlantsRepository } from '../dist/plants/index.js';
import { listen } from '../dist/server/edge/listen.js';
import { readEnvironment } from '../dist/server/settings/environment.js';

// Starts the built service like its main program, but with a store that discards plants: no commit.
setFlagsFromString('--no-allocation-site-pretenuring');
const settings = readEnvironment(process.env);
const app = await createApplication(settings);
app.get(PlantsRepository, { strict: false }).insert = () => Promise.resolve('created');
await listen(app, settings);

/** Runs the program, after a build if need be: `npm start`, `npm run plant-store -- export`. */
import { runIfStale } from './if-stale.mjs';

runIfStale('build');
await import('../dist/program/plant-store.js');

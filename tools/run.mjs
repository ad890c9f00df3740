/** Runs the program, after a build if need be: `npm start`, `npm run plant-store -- export`. */
import { runIfStale } from './if-stale.mjs';
import module from 'node:module';

runIfStale('build');
module.enableCompileCache('node_modules/.cache/compiled');
await import('../dist/program/plant-store.js');

/** Runs the program, after a build if need be: `npm start`, `npm run plant-store -- export`. */
import { enableCompileCache } from 'node:module';
import { runIfStale } from './if-stale.mjs';

runIfStale('build');
enableCompileCache('node_modules/.cache/compiled');
await import('../dist/program/plant-store.js');

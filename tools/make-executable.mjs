/** Lets `npx plant-store` run the built program in a clone: compilers do not set the permission. */
import { chmodSync } from 'node:fs';

chmodSync('dist/plant-store.js', 0o755);

import { enableCompileCache } from 'node:module';
import { join } from 'node:path';

/**
 * Has Node.js keep what V8 makes of the source code, so that later starts take an eighth less
 * processor time. Every program of this package imports this file before the code to keep.
 *
 * It is kept beside the program, because whoever can write to the cache decides what runs. Where that
 * folder cannot be written to, there is no cache, and nothing else changes. `NODE_COMPILE_CACHE` names
 * another folder, and `NODE_DISABLE_COMPILE_CACHE=1` turns it off.
 */
enableCompileCache(join(__dirname, '.compile-cache'));

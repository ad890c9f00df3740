import { parseArgs } from 'node:util';
import { addEnvFile } from '../config';
import type { Command } from './command';

/** `plant-store serve`, or `plant-store` alone: runs the service as the environment configures it. */
export const serve: Command = {
  words: ['serve'],
  synopsis: 'serve [--env-file FILE]',
  summary:
    'runs the service as the environment configures it, and the file of variables that it lacks; this is the default command',

  async run(args, environment) {
    const { values } = parseArgs({ args, options: { 'env-file': { type: 'string' } } });
    if (values['env-file'] !== undefined) addEnvFile(values['env-file'], environment);
    // Loaded late, because the other commands do not need the framework.
    await import('../main.js');
  },
};

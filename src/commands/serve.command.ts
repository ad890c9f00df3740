import { type Command, UsageError } from './command';

/** `plant-store serve`, or `plant-store` alone: runs the service, configured by the environment. */
export const serve: Command = {
  words: ['serve'],
  synopsis: 'serve',
  summary:
    'runs the service, as the environment configures it; this is what happens without a command',

  async run(args) {
    if (args.length > 0)
      throw new UsageError('serve takes no arguments: the environment configures it');
    // Loaded late: the other commands need nothing of the framework.
    await import('../main.js');
  },
};

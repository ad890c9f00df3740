import { type Command, UsageError } from './command';

/** `plant-store serve`, or `plant-store` alone: runs the service as the environment configures it. */
export const serve: Command = {
  words: ['serve'],
  synopsis: 'serve',
  summary: 'runs the service as the environment configures it; this is the default command',

  async run(args) {
    if (args.length > 0)
      throw new UsageError('serve takes no arguments: the environment configures it');
    // Loaded late, because the other commands do not need the framework.
    await import('../main.js');
  },
};

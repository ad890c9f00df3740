import type { Command } from './command';
import { serve } from './serve.command';
import { tokenCreate } from './token-create.command';

export { type Command, UsageError } from './command';

/** All commands of the `plant-store` program. The first one is the default. */
export const commands: readonly [Command, ...Command[]] = [serve, tokenCreate];

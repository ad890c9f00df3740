import type { Command } from './command';
import { serve } from './serve.command';
import { tokenCreate } from './token-create.command';

export { type Command, UsageError } from './command';

/** Every command of the `plant-store` program. The first one runs when none is named. */
export const commands: readonly [Command, ...Command[]] = [serve, tokenCreate];

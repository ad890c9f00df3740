#!/usr/bin/env node
import './node-version';
import { CommanderError } from 'commander';
import { createProgram } from './commands';

/** The command line of the Plant Store. Ends with 0, with 1 when a command failed, 2 when it was misused. */
createProgram()
  .parseAsync()
  .catch((error: unknown) => {
    if (error instanceof CommanderError) {
      // It has printed its message. Help and the version are no errors.
      process.exitCode = error.exitCode === 0 ? 0 : 2;
      return;
    }
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = error instanceof Error && error.name === 'UsageError' ? 2 : 1;
  });

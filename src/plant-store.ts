#!/usr/bin/env node
import './node-version';
import { CommanderError } from 'commander';
import { createProgram } from './commands';
import { describeForOperator, UsageError } from './errors';

/** The command line of the Plant Store. Ends with 0, with 1 when a command failed, 2 when it was misused. */
async function main(): Promise<void> {
  try {
    await createProgram().parseAsync();
  } catch (error) {
    // A statement that was interrupted may still be waiting for its answer.
    process.exit(report(error));
  }
}

/** Prints why a command ended, and returns the exit code for it. */
function report(error: unknown): number {
  // The parser has printed its message. Help and the version are no errors.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
  // The reader of the output has closed the pipe.
  if ((error as { code?: unknown }).code === 'EPIPE') return 1;
  console.error(describeForOperator(error));
  return error instanceof UsageError ? 2 : 1;
}

void main();

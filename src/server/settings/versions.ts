/**
 * Ends the process with a plain message when Node.js is too old.
 *
 * Every program of this package imports this file first, for its effect. Nest is published as ES
 * modules, and an older Node.js fails to load them with a stack trace before any of our code runs.
 * `node:sqlite` is stable from 24.15 on. Before 24.16 and 26.1, and in 25, Node never closes the
 * response to a pipelined request whose connection breaks.
 */
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);

const isSupported = (major === 24 && minor >= 16) || (major === 26 && minor >= 1) || major > 26;

if (!isSupported) {
  console.error(
    `The Plant Store needs Node.js 24.16 or a later 24.x, or 26.1 or later. This is ${process.version}, ${process.execPath}.`,
  );
  process.exit(1);
}

export function packageVersion(): string {
  // Not read at run time: a bundle has it inside.
  const { version } = require('../../../package.json') as { version: string };
  return version;
}

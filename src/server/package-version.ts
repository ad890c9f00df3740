/** The version of this package. */
export function packageVersion(): string {
  // Not read at run time: a bundle has it inside.
  const { version } = require('../../package.json') as { version: string };
  return version;
}

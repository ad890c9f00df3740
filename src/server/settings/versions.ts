/**
 * Ends the process with a plain message when Node.js is too old.
 *
 * Both programs import this file first, for its effect: a machine's own Node.js may be older than the
 * one that npm installs, and fails with a stack trace before any other code of ours runs. Before 24.18.1
 * and 26.5.1, Node.js silently drops headers beyond its limit (CVE-2026-58044).
 */
// Not an import, which would put `package.json` among the sources.
const { version, engines } = require('../../../package.json') as {
  version: string;
  engines: { node: string };
};

/** Whether a version is in a range of the two kinds that `engines` has: `^24.18.1` and `>=26.5.1`. */
function isIn(range: string, running: string): boolean {
  const [major = 0, ...rest] = range.replace(/^\D+/, '').split('.').map(Number);
  const [runningMajor = 0, ...runningRest] = running.split('.').map(Number);
  if (runningMajor !== major) return range.startsWith('>=') && runningMajor > major;
  const index = rest.findIndex((part, at) => part !== runningRest[at]);
  return index < 0 || Number(runningRest[index]) > Number(rest[index]);
}

if (!engines.node.split(' || ').some((range) => isIn(range, process.versions.node))) {
  console.error(
    `The Plant Store needs Node.js ${engines.node}. This is ${process.version}, ${process.execPath}.`,
  );
  process.exit(1);
}

export function packageVersion(): string {
  return version;
}

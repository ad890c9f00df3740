/**
 * Ends the process with a plain message when Node.js is too old.
 *
 * The service and the CLI import this file first, for its side effect: the installed Node.js may be older than
 * required, and would otherwise fail with a stack trace. Before 24.18.1 and 26.5.1, Node.js silently drops headers
 * beyond its limit (CVE-2026-58044).
 */
// Uses require(), because an import would add `package.json` to the sources.
const { version, engines } = require('../../../package.json') as {
  version: string;
  engines: { node: string };
};

/** Whether a version is in a range. Supports the two kinds of range in `engines`: `^24.18.1` and `>=26.5.1`. */
function satisfies(range: string, running: string): boolean {
  const [major = 0, ...rest] = range.replace(/^\D+/, '').split('.').map(Number);
  const [runningMajor = 0, ...runningRest] = running.split('.').map(Number);
  if (runningMajor !== major) return range.startsWith('>=') && runningMajor > major;
  const index = rest.findIndex((part, at) => part !== runningRest[at]);
  return index < 0 || Number(runningRest[index]) > Number(rest[index]);
}

if (!engines.node.split(' || ').some((range) => satisfies(range, process.versions.node))) {
  console.error(
    `The Plant Store requires Node.js ${engines.node}. This is ${process.version}, ${process.execPath}.`,
  );
  process.exit(1);
}

export function packageVersion(): string {
  return version;
}

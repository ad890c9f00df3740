/**
 * Ends the process with a plain message if the major version of Node.js is older than `engines` allows. Must be
 * imported before anything that an older Node.js cannot load, which would end it with a stack trace.
 */

// Uses require(), because an import would add `package.json` to the sources.
const { version, engines } = require('../../../package.json') as {
  version: string;
  engines: { node: string };
};

if (Number.parseInt(process.versions.node) < Number(/\d+/.exec(engines.node)?.[0])) {
  console.error(
    `The Plant Store requires Node.js ${engines.node}. This is ${process.version}, ${process.execPath}.`,
  );
  process.exit(1);
}

export { version };

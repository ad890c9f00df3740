/**
 * Throws a sentence if the major version of Node.js is older than `engines` allows. Must be imported before anything that
 * an older Node.js cannot load, which would fail with a TypeError.
 */
import { OperatorError } from './operator.error';

// Uses require(), because an import would add `package.json` to the sources.
const { name, engines } = require('../package.json') as {
  name: string;
  engines: { node: string };
};

const major = Number.parseInt(process.versions.node);
const oldestMajor = Number(/\d+/.exec(engines.node)?.[0]);
if (major < oldestMajor) {
  throw new OperatorError(
    `${name} requires Node.js ${engines.node}. This is ${process.version}, ${process.execPath}.`,
  );
}

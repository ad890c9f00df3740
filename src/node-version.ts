/**
 * Ends the process with one sentence when Node.js is too old for what the program loads next.
 *
 * Imported first by every program of this package, and for this effect alone: Nest is published as
 * ES modules, which an older Node.js answers with a stack trace before any of our code runs.
 * `node:sqlite` asks for 24.15, where it stopped being experimental; before 24.16 and 26.1, and in 25,
 * Node never closes the response to a pipelined request whose connection breaks.
 */
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);

const isGood = (major === 24 && minor >= 16) || (major === 26 && minor >= 1) || major > 26;

if (!isGood) {
  console.error(
    `The Plant Store needs Node.js 24.16 or a newer 24, or 26.1 or newer, and this is ${process.version}: use "npm start", which brings its own.`,
  );
  process.exit(1);
}

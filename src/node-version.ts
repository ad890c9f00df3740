/**
 * Ends the process with one sentence when Node.js is too old for what the program loads next.
 *
 * Imported first by every program of this package, and for this effect alone: Nest is published as
 * ES modules, which an older Node.js answers with a stack trace before any of our code runs.
 * `node:sqlite` asks for 24.15, where it stopped being experimental.
 */
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);

if (major < 24 || (major === 24 && minor < 15)) {
  console.error(
    `The Plant Store needs Node.js 24.15 or newer, and this is ${process.version}: use "npm start", which brings its own.`,
  );
  process.exit(1);
}

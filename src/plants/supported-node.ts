/**
 * Refuses to be loaded by a Node.js that is too old, with one sentence. Before 22.16 `node:sqlite` takes
 * neither a time-out nor the URL of a file, and 23 is not maintained.
 */
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);

if (!((major === 22 && minor >= 16) || major >= 24)) {
  throw new Error(
    `The module of plant-store needs Node.js 22.16 or a newer 22, or 24 or newer, and this is ${process.version}.`,
  );
}

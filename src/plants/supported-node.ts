/**
 * Refuses to be loaded by a Node.js that is too old, with one sentence. The SQLite of those before
 * 22.22.3 and 24.15 may lose plants (`sqlite.version.ts` says how); 23 and 25 are not maintained.
 */
const [major = 0, minor = 0, patch = 0] = process.versions.node.split('.').map(Number);

const isSupported =
  (major === 22 && (minor > 22 || (minor === 22 && patch >= 3))) ||
  (major === 24 && minor >= 15) ||
  major >= 26;

if (!isSupported) {
  throw new Error(
    `The module of plant-store needs Node.js 22.22.3 or a newer 22, 24.15 or a newer 24, or 26 or newer, and this is ${process.version}.`,
  );
}

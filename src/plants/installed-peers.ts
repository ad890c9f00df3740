/**
 * Refuses to be loaded where packages are missing, with one sentence that names them. They are optional
 * peers, because the client needs none of them.
 */
// Bundlers follow only a `require` of a literal name.
const peers: Readonly<Record<string, () => unknown>> = {
  '@nestjs/common': () => require('@nestjs/common') as unknown,
  '@nestjs/core': () => require('@nestjs/core') as unknown,
  'class-transformer': () => require('class-transformer') as unknown,
  'class-validator': () => require('class-validator') as unknown,
};

const missing = Object.keys(peers).filter((name) => {
  try {
    return peers[name]?.() === undefined;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'MODULE_NOT_FOUND') throw error;
    return true;
  }
});

if (missing.length > 0) {
  throw new Error(
    `The module of plant-store needs other packages: npm install ${missing.join(' ')}`,
  );
}

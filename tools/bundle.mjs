/**
 * Makes of the built `dist` what the package is published with. `npm run build` and `npm start` run it;
 * alone it is `node tools/bundle.mjs`, after a build.
 *
 * - `dist/program/` is the program as one file, `bundle.js`, which needs nothing installed beside
 *   it, and `plant-store.js`, which runs it: `node dist/program/plant-store.js serve`. With it are the
 *   files that it reads: the programs of the SQLite thread, Swagger UI, and the licences of what is
 *   bundled.
 * - `dist/plants/class-validator.js` becomes the few functions of class-validator that the module
 *   uses. As a package it brings 22 MB.
 */
import {
  chmodSync,
  cpSync,
  globSync,
  mkdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { build, transform } from 'esbuild';

const PROGRAM = 'dist/program';
const BUNDLE = `${PROGRAM}/bundle.js`;

/** Packages that are loaded when they are there, and that the program works without. */
const OPTIONAL = [
  ...['@nestjs/microservices', '@nestjs/websockets', '@nestjs/platform-express'],
  ...['@fastify/view', '@fastify/multipart', '@as-integrations/fastify'],
  ...['class-transformer', 'class-validator', 'pg-cloudflare', 'pg-native'],
  ...['@opentelemetry/resources', '@opentelemetry/sdk-node'],
].flatMap((name) => [name, `${name}/*`]);

const options = {
  bundle: true,
  platform: 'node',
  format: 'cjs',
  metafile: true,
  minifyWhitespace: true,
  minifySyntax: true,
  legalComments: 'none',
  logLevel: 'warning',
};

/**
 * Shortens names within packages, a sixth of the program. Not in those whose class names are printed,
 * and not in ours, whose stack traces somebody may have to read.
 */
const shortenNames = {
  name: 'shorten-names',
  setup({ onLoad }) {
    onLoad({ filter: /[/\\]node_modules[/\\].*\.[cm]?js$/ }, async ({ path }) => {
      if (/node_modules[/\\](?:@nestjs|jose)[/\\]/.test(path)) return undefined;
      const { code } = await transform(readFileSync(path, 'utf8'), {
        minify: true,
        platform: 'node',
        legalComments: 'none',
      });
      return { contents: code };
    });
  },
};

/** The packages that a bundle was made from, as the folders that they are in. */
function packagesOf({ inputs }) {
  const folders = Object.keys(inputs).map(
    (file) => /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0],
  );
  return [...new Set(folders)].filter((folder) => folder !== undefined).sort();
}

/** Name, version and licence of packages; their licences ask for it. */
function formatLicences(folders) {
  return folders
    .map((folder) => {
      const { name, version, license } = JSON.parse(readFileSync(`${folder}/package.json`, 'utf8'));
      const [file] = globSync(`${folder}/{LICEN[SC]E,licen[sc]e,Licen[sc]e}*`);
      const text = file === undefined ? '' : `\n\n${readFileSync(file, 'utf8').trim()}`;
      return `${name} ${version}, ${license}${text}\n`;
    })
    .join(`\n${'-'.repeat(80)}\n\n`);
}

const FUNCTIONS = 'dist/plants/class-validator.js';
const validator = await build({
  ...options,
  stdin: {
    contents: "export { ValidateBy, ValidateIf, validateSync } from 'class-validator';",
    resolveDir: '.',
  },
  outfile: FUNCTIONS,
  allowOverwrite: true,
  // class-validator keeps its rules in a global variable, where a host's own copy keeps them too.
  mainFields: ['module', 'main'],
  define: { globalThis: 'rules' },
  banner: { js: 'const rules = {};' },
});

rmSync(PROGRAM, { recursive: true, force: true });
mkdirSync(PROGRAM);
const program = await build({
  ...options,
  entryPoints: ['dist/plant-store.js'],
  outfile: BUNDLE,
  external: [...OPTIONAL, 'swagger-ui-dist'],
  plugins: [shortenNames],
  define: { 'import.meta.url': 'fileUrl' },
  banner: { js: "const fileUrl = require('node:url').pathToFileURL(__filename).href;" },
});

// The bundler puts `_` before names of Nest's classes, which are in log lines.
const text = readFileSync(BUNDLE, 'utf8');
writeFileSync(BUNDLE, text.replaceAll(/(new Logger\d*\()_(\w+)\.name/g, '$1"$2"'));

// A file of its own, because a file that is running already is not compiled by the cache. Node.js
// that is too old has no cache, and the program says so. src/compile-cache.ts explains the folder.
writeFileSync(
  `${PROGRAM}/plant-store.js`,
  `#!/usr/bin/env node
require('node:module').enableCompileCache?.(require('node:path').join(__dirname, '.compile-cache'));
require('./bundle.js');
`,
);

cpSync('dist/plants/persistence/sqlite/sqlite.worker.mjs', `${PROGRAM}/sqlite.worker.mjs`);
cpSync('dist/data/sqlite.task.js', `${PROGRAM}/sqlite.task.js`);
cpSync('dist/openapi/ui', `${PROGRAM}/ui`, { recursive: true });
for (const name of ['swagger-ui-bundle.js', 'swagger-ui.css']) {
  cpSync(`node_modules/swagger-ui-dist/${name}`, `${PROGRAM}/ui/${name}`);
}
const bundled = [...packagesOf(program.metafile), ...packagesOf(validator.metafile)];
writeFileSync(
  `${PROGRAM}/LICENSES.txt`,
  formatLicences([...new Set([...bundled, 'node_modules/swagger-ui-dist'])].sort()),
);
// Compilers do not set the permission.
chmodSync(`${PROGRAM}/plant-store.js`, 0o755);

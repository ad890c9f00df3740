/**
 * Makes of the built `dist` what the package is published with. `npm run build` runs it.
 *
 * `dist/program/` is the program as one file, `plant-store.js`, which needs nothing installed beside
 * it. With it are the files that it reads: what threads and processes of its own run, Swagger UI, and
 * the licences of what is bundled.
 */
import { chmodSync, cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename } from 'node:path';
import { build } from 'esbuild';

const PROGRAM = 'dist/program';

/** What runs in a thread or a process of its own. Hosts that bundle the module copy such a file. */
const WORKERS = [
  'dist/plants/persistence/sqlite/sqlite.worker.js',
  'dist/plants/persistence/sqlite/sqlite.task.js',
];

/** Packages that are loaded when they are there, and that the program works without. */
const OPTIONAL = [
  ...['@nestjs/microservices', '@nestjs/websockets', '@nestjs/platform-express'],
  ...['@fastify/view', '@fastify/multipart', '@as-integrations/fastify'],
  ...['pg-cloudflare', 'pg-native'],
];

/** ES modules among the packages ask where they are. */
const COMMONJS = {
  format: 'cjs',
  define: { 'import.meta.url': 'fileUrl' },
  banner: {
    js: '"use strict"; const fileUrl = require("node:url").pathToFileURL(__filename).href;',
  },
};

function bundle(entry, outfile) {
  return build({
    entryPoints: [entry],
    outfile,
    allowOverwrite: true,
    bundle: true,
    platform: 'node',
    ...COMMONJS,
    external: OPTIONAL.flatMap((name) => [name, `${name}/*`]),
    metafile: true,
    minifyWhitespace: true,
    minifySyntax: true,
    legalComments: 'none',
    logLevel: 'warning',
  });
}

/** The packages that a bundle was made from, as the folders that they are in. */
function packagesOf({ inputs }) {
  return Object.keys(inputs).flatMap(
    (file) => /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0] ?? [],
  );
}

/** Name, version and licence of a package; licences ask for it. */
function formatLicence(folder) {
  const { name, version, license } = JSON.parse(readFileSync(`${folder}/package.json`, 'utf8'));
  const file = readdirSync(folder).find((entry) => /^licen[sc]e/i.test(entry));
  const text = file === undefined ? '' : `\n\n${readFileSync(`${folder}/${file}`, 'utf8').trim()}`;
  return `${name} ${version}, ${license}${text}\n`;
}

rmSync(PROGRAM, { recursive: true, force: true });
const program = await bundle('dist/cli/plant-store.js', `${PROGRAM}/plant-store.js`);
for (const worker of WORKERS) {
  const { metafile } = await bundle(worker, worker);
  // It starts in milliseconds, and shall go on doing so.
  if (packagesOf(metafile).length > 0) throw new Error(`${worker} must not import packages.`);
  cpSync(worker, `${PROGRAM}/${basename(worker)}`);
}
// Compilers do not set the permission.
chmodSync(`${PROGRAM}/plant-store.js`, 0o755);

const swaggerUi = 'node_modules/swagger-ui-dist';
for (const name of [
  ...['swagger-ui-bundle.js', 'swagger-ui-standalone-preset.js', 'swagger-ui.css'],
  ...['favicon-16x16.png', 'favicon-32x32.png'],
]) {
  cpSync(`${swaggerUi}/${name}`, `${PROGRAM}/ui/${name}`);
}
const packages = new Set([...packagesOf(program.metafile), swaggerUi]);
writeFileSync(
  `${PROGRAM}/LICENSES.txt`,
  [...packages]
    .sort()
    .map(formatLicence)
    .join(`\n${'-'.repeat(80)}\n\n`),
);

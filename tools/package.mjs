/**
 * Packs what was built into a folder: `node tools/package.mjs FOLDER`. The package.json of the package
 * has nothing that only a clone can use, such as its scripts.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import process from 'node:process';

const [folder = '.'] = process.argv.slice(2);
const stage = mkdtempSync(join(tmpdir(), 'plant-store-package-'));
for (const { path } of pack('.', '--dry-run').files) cpSync(path, join(stage, path));
const manifest = JSON.parse(readFileSync('package.json', 'utf8'));
for (const name of ['scripts', 'devDependencies', 'overrides', 'allowScripts', 'jest']) {
  delete manifest[name];
}
writeFileSync(join(stage, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
const { filename } = pack(stage, '--pack-destination', resolve(folder));
rmSync(stage, { recursive: true });
process.stdout.write(`${join(folder, filename)}\n`);

function pack(cwd, ...options) {
  const output = execFileSync('npm', ['pack', '--json', '--ignore-scripts', ...options], { cwd });
  return Object.values(JSON.parse(output))[0];
}

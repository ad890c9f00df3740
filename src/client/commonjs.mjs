/** Adds the CommonJS entry to dist/client after the build, because a run of `tsc` writes one format. */
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import ts from 'typescript';

const compilerOptions = { module: ts.ModuleKind.CommonJS, target: ts.ScriptTarget.ES2024 };
const source = readFileSync('dist/client/index.mjs', 'utf8');
writeFileSync('dist/client/index.cjs', ts.transpileModule(source, { compilerOptions }).outputText);
copyFileSync('dist/client/index.d.mts', 'dist/client/index.d.cts');

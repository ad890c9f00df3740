import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolder, removeFolder } from '../../support/folder';
import { type Run, run, shell } from '../../support/run';
import { configure, PROJECT } from '../packed';

const MODULES = join(PROJECT, 'test/node_modules');
const PAGE = readFileSync(join(PROJECT, 'docs/clients.md'), 'utf8');

/** The example of docs/clients.md in a language, under a heading. */
export function example(heading: string, language: string): string {
  const section = PAGE.split(/^## /m).find((text) => text.startsWith(heading));
  const [, code] = new RegExp(`\`\`\`${language}\n(.*?)\`\`\``, 's').exec(section ?? '') ?? [];
  if (code === undefined) throw new Error(`No ${language} under "${heading}".`);
  return code;
}

/** A TypeScript project of ES modules with this package and those of the tests, in a folder of its own. */
export class ClientProject {
  readonly folder = makeFolder();

  /** @param sources the content of each file in `src`, by its name */
  constructor(
    sources: Record<string, string>,
    private readonly env: NodeJS.ProcessEnv,
  ) {
    const modules = join(this.folder, 'node_modules');
    for (const folder of [modules, join(this.folder, 'src')]) mkdirSync(folder);
    for (const name of readdirSync(MODULES)) symlinkSync(join(MODULES, name), join(modules, name));
    mkdirSync(join(modules, '@plant-store'));
    symlinkSync(join(PROJECT, 'dist/client'), join(modules, '@plant-store/client'));
    this.write('package.json', JSON.stringify({ type: 'module' }));
    const lib = ['es2024', 'dom', 'dom.iterable'];
    configure(this.folder, { lib, skipLibCheck: true, rootDir: 'src', outDir: 'dist' });
    for (const [name, content] of Object.entries(sources)) this.write(`src/${name}`, content);
  }

  write(name: string, content: string): string {
    const file = join(this.folder, name);
    writeFileSync(file, content);
    return file;
  }

  /** Runs a command in the folder. */
  shell(command: string): Promise<Run> {
    return shell(command, { cwd: this.folder, env: this.env });
  }

  /** Runs what a source was compiled to. */
  run(program: string, env = this.env): Promise<Run> {
    return run(process.execPath, [join(this.folder, 'dist', program)], { env });
  }

  remove(): void {
    removeFolder(this.folder);
  }
}

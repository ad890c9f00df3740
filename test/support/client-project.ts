import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { TestApplication, TOKEN } from './application';
import { makeFolder, removeFolder } from './folder';
import { type Run, run, shell } from './run';

const ROOT = join(__dirname, '../..');
const MODULES = join(ROOT, 'test/node_modules');
const MARKDOWN = readFileSync(join(ROOT, 'docs/clients.md'), 'utf8');

/** The example of docs/clients.md in a language, under a heading. */
export function example(heading: string, language: string): string {
  const [section = ''] = MARKDOWN.split(/^## /m).filter((text) => text.startsWith(heading));
  const [, code] = new RegExp(`\`\`\`${language}\n(.*?)\`\`\``, 's').exec(section) ?? [];
  if (code === undefined) throw new Error(`No ${language} under "${heading}".`);
  return code;
}

/** Starts the service in this process, and gives the variables that the examples read. */
export async function startForClients(): Promise<{
  application: TestApplication;
  env: NodeJS.ProcessEnv;
}> {
  const application = await TestApplication.start();
  const { origin } = await application.listen();
  return { application, env: { ...process.env, PLANT_STORE: origin, TOKEN } };
}

/** A TypeScript project of ES modules with this package and those of the tests, in a folder of its own. */
export class ClientProject {
  readonly folder = makeFolder();

  /** @param sources the content of each file in `src`, by its name */
  constructor(
    sources: Record<string, string>,
    private readonly env: NodeJS.ProcessEnv,
  ) {
    const compilerOptions = {
      module: 'nodenext',
      target: 'es2024',
      lib: ['es2024', 'dom', 'dom.iterable'],
      types: ['node'],
      ...{ strict: true, skipLibCheck: true, rootDir: 'src', outDir: 'dist' },
    };
    this.write('package.json', JSON.stringify({ type: 'module' }));
    this.write('tsconfig.json', JSON.stringify({ compilerOptions }));
    const modules = join(this.folder, 'node_modules');
    mkdirSync(modules);
    for (const name of readdirSync(MODULES)) symlinkSync(join(MODULES, name), join(modules, name));
    symlinkSync(ROOT, join(modules, 'plant-store'));
    mkdirSync(join(this.folder, 'src'));
    for (const [name, content] of Object.entries(sources)) this.write(`src/${name}`, content);
  }

  write(name: string, content: string): string {
    const file = join(this.folder, name);
    writeFileSync(file, content);
    return file;
  }

  /**
   * Runs a command that generates a client.
   *
   * @throws Error when it fails
   */
  async generate(command: string): Promise<void> {
    const { code, stderr, stdout } = await shell(command, { cwd: this.folder, env: this.env });
    if (code !== 0) throw new Error(`${command}: ${stderr}${stdout}`);
  }

  compile(): Promise<Run> {
    return run(process.execPath, [join(MODULES, 'typescript/bin/tsc'), '-p', this.folder]);
  }

  run(program: string, env: NodeJS.ProcessEnv): Promise<Run> {
    return run(process.execPath, [join(this.folder, 'dist', program)], { env });
  }

  remove(): void {
    removeFolder(this.folder);
  }
}

// @ts-check
// A flat configuration. eslint.config.js loads it from this file, whose name the project layout requires.
const { warn } = require('node:console');
const { existsSync } = require('node:fs');
const eslint = require('@eslint/js');
const jest = require('eslint-plugin-jest');
const { defineConfig } = require('eslint/config');
const tseslint = require('typescript-eslint');

const outside = {
  regex: '^(?:\\.\\./)+(?:app\\.module|cli|client|main|server)(?:/|$)',
  message: 'The package must not import anything outside itself.',
};
const commands = { regex: '^\\.{1,2}/cli(?:/|$)', message: 'The server must not import CLI code.' };
const client = { regex: '^\\.+/client(?:/|$)', message: 'Do not import the client here.' };
const folder = { regex: '^[./]+$', message: 'Import a file, not a folder.' };
const anything = { regex: '', message: 'The client must not import anything.' };

/** The folders and root files of `src/plants`. Each may import itself and what follows it. */
const plantsOrder = [
  ['index'],
  ['plants.module'],
  ['plants.controller'],
  ['new-plant.pipe'],
  ['options'],
  ['auth', 'plants.service'],
  ['http'],
  ['store'],
  ['plants.repository'],
  ['plant'],
  ['errors'],
];

/** The folders of `src/server`. Each may import itself and what follows it. */
const serverOrder = [['openapi'], ['http'], ['process'], ['monitoring'], ['guards'], ['settings']];

/**
 * @param {string[]} files
 * @param {...{ regex: string, message: string }} patterns
 */
const restrictImports = (files, ...patterns) => ({
  files,
  ignores: ['**/*.spec.ts'],
  rules: { 'no-restricted-imports': ['error', { patterns }] },
});

/**
 * Forbids imports against an order of folders. ESLint applies only the last rule that matches a file, so these rules
 * repeat the patterns of the whole tree.
 * @param {string} root
 * @param {string[][]} order
 * @param {...{ regex: string, message: string }} patterns
 */
const restrictOrder = (root, order, ...patterns) =>
  order.map((names, at) => {
    const previous = order.slice(0, at).flat();
    const escaped = previous.map((name) => name.replace('.', '\\.')).join('|');
    const upward = {
      regex: `^\\.{1,2}/(?:\\.\\./)*(?:${escaped})(?:/|$)`,
      message: `In ${root}, ${names.join(' and ')} must not import ${previous.join(', ')}.`,
    };
    const files = names.flatMap((name) => [`${root}/${name}.ts`, `${root}/${name}/**`]);
    return restrictImports(files, ...patterns, ...(at > 0 ? [upward] : []));
  });

/** Files that import packages of `test/package.json`. They are linted where these packages are installed. */
const needTestPackages = [
  'test/**/*.{system,slow}-spec.ts',
  'test/{package,support}/**',
  'bench/**',
];

/** Forms that a reader must look at twice: each hides a step, a name or a case of a list. */
const noSecondLook = {
  curly: ['error', 'multi-line'],
  'no-multi-assign': 'error',
  'no-return-assign': ['error', 'always'],
  'no-unused-expressions': 'error',
  'no-restricted-syntax': [
    'error',
    {
      selector: 'SpreadElement > :matches(ArrayExpression, ObjectExpression)',
      message: 'Write the entries out, one on a line, instead of spreading a literal.',
    },
    {
      selector: 'VariableDeclarator[id.type="ArrayPattern"][init.type="ArrayExpression"]',
      message: 'Declare each name in a statement of its own.',
    },
    {
      selector: 'ExpressionStatement > AssignmentExpression[left.type="ArrayPattern"]',
      message: 'Assign each name in a statement of its own.',
    },
    {
      selector: ':not(ExpressionStatement, ForStatement) > AssignmentExpression',
      message: 'Assign in a statement, not inside an expression.',
    },
  ],
};

const hasTestPackages = existsSync('test/node_modules');
if (!hasTestPackages) {
  warn(`Not linted without \`npm run test:install\`: ${needTestPackages.join(' ')}`);
}

module.exports = defineConfig(
  // The baselines import packages that only the benchmark installs.
  { ignores: ['dist/**', 'coverage/**', '.bench/**', 'bench/dist/**', 'bench/baselines/**'] },
  { ignores: hasTestPackages ? [] : needTestPackages },
  eslint.configs.recommended,
  { rules: noSecondLook },
  {
    files: ['**/*.ts', '**/*.mts'],
    extends: [tseslint.configs.strictTypeChecked, tseslint.configs.stylisticTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: __dirname } },
    rules: {
      '@typescript-eslint/switch-exhaustiveness-check': [
        'error',
        { considerDefaultExhaustiveForUnions: true },
      ],
      // DTO classes of Nest describe shapes. Nest serializes plain objects of these shapes.
      '@typescript-eslint/no-unsafe-class-instance-assignment': 'off',
      '@typescript-eslint/explicit-module-boundary-types': 'error',
      // Nest modules are classes that contain nothing but their decorator.
      '@typescript-eslint/no-extraneous-class': ['error', { allowWithDecorator: true }],
      // Modules that are loaded only when they are needed or installed.
      '@typescript-eslint/no-require-imports': [
        'error',
        {
          allow: [
            '^@nestjs/swagger$',
            '^\\./postgres/postgres\\.driver$',
            '^(?:\\.\\./)+package\\.json$',
          ],
        },
      ],
      // As in TypeScript, a parameter that only subclasses use begins with an underscore.
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_' }],
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
    },
  },
  restrictImports(['src/*.ts', 'src/server/**'], client, commands),
  restrictOrder('src/server', serverOrder, client, commands),
  restrictImports(['src/cli/**'], client),
  restrictImports(['src/plants/**'], outside, folder),
  restrictOrder('src/plants', plantsOrder, outside, folder),
  restrictImports(['src/client/**'], anything),
  // A command prints by `print()`, which fails if the output cannot be written.
  { files: ['src/cli/**'], rules: { 'no-console': ['error', { allow: ['error'] }] } },
  {
    files: ['**/*.js', '**/*.cjs'],
    languageOptions: {
      sourceType: 'commonjs',
      globals: {
        require: 'readonly',
        module: 'writable',
        exports: 'readonly',
        __dirname: 'readonly',
      },
    },
  },
  {
    files: ['**/*spec.ts'],
    extends: [jest.configs['flat/recommended']],
    rules: {
      // Assertions may be in helpers that compare whole Error bodies.
      'jest/expect-expect': ['error', { assertFunctionNames: ['expect', 'expect*', 'fc.assert'] }],
    },
  },
);

// @ts-check
// A flat configuration under the name the project's layout asks for: eslint -c .eslintrc.js
const eslint = require('@eslint/js');
const jest = require('eslint-plugin-jest');
const { defineConfig } = require('eslint/config');
const tseslint = require('typescript-eslint');

/**
 * The rooms of src that are entered by their door, index.ts. A room of a room has a door of its own:
 * `plants/persistence` and its two databases, for src/data and src/config.
 */
const ROOMS = [
  ...['auth', 'commands', 'config', 'data', 'errors', 'http', 'openapi', 'persistence', 'plants'],
  ...['server', 'health', 'limits', 'logging', 'metrics', 'tracing'],
].join('|');

/** What the program is made of, which the package of the module must not import. */
const PROGRAM = 'app\\.module|application|commands|config|data|main|openapi|operations|server';

const doors = {
  regex: `^\\.{1,2}/(?:[^/]+/)*(?:${ROOMS})/(?!(?:persistence(?:/(?:sqlite|postgres))?|sqlite|postgres)$).`,
  message: 'Enter a room by its door, index.ts.',
};
const program = {
  regex: `^(?:\\.\\./)+(?:(?:${PROGRAM})(?:/|$))`,
  message: 'The module must not import the program.',
};
const outside = { regex: '^\\.\\./', message: 'The catalogue imports nothing of the project.' };
const client = { regex: '^\\.+/client(?:/|$)', message: 'The client is for others to import.' };
const anything = { regex: '', message: 'The client imports nothing.' };

/**
 * @param {string[]} files
 * @param {...{ regex: string, message: string }} patterns
 */
const restrictImports = (files, ...patterns) => ({
  files,
  ignores: ['**/*.spec.ts'],
  rules: { 'no-restricted-imports': ['error', { patterns }] },
});

module.exports = defineConfig(
  // The baselines import what only the benchmark installs.
  { ignores: ['dist/**', 'coverage/**', '.bench/**', 'bench/dist/**', 'bench/baselines/**'] },
  eslint.configs.recommended,
  {
    files: ['**/*.ts', '**/*.mts'],
    extends: [tseslint.configs.strictTypeChecked, tseslint.configs.stylisticTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: __dirname } },
    rules: {
      '@typescript-eslint/switch-exhaustiveness-check': [
        'error',
        { considerDefaultExhaustiveForUnions: true },
      ],
      // Nest's DTO classes describe shapes; plain objects of that shape are what it serialises.
      '@typescript-eslint/no-unsafe-class-instance-assignment': 'off',
      '@typescript-eslint/explicit-module-boundary-types': 'error',
      // Nest modules are classes that carry nothing but their decorator.
      '@typescript-eslint/no-extraneous-class': ['error', { allowWithDecorator: true }],
      // What is loaded only when it is needed. Bundlers follow `require`, not `createRequire`.
      '@typescript-eslint/no-require-imports': [
        'error',
        {
          allow: [
            '^@nestjs/swagger$',
            '^\\./(?:openapi|open-telemetry|(?:postgres|sqlite)/(?:postgres|sqlite)-plants\\.(?:repository|archive))$',
            '^\\.\\./package\\.json$',
          ],
        },
      ],
      // As TypeScript has it: a parameter that only subclasses use begins with an underscore.
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_' }],
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
    },
  },
  restrictImports(['src/**'], doors, client),
  restrictImports(['src/{auth,http,plants}/**'], doors, client, program),
  restrictImports(['src/errors/**'], outside),
  restrictImports(['src/client/**'], anything),
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
    files: ['src/openapi/ui/*.js'],
    languageOptions: {
      sourceType: 'module',
      globals: Object.fromEntries(
        ['document', 'fetch', 'localStorage', 'matchMedia', 'SwaggerUIBundle'].map((name) => [
          name,
          'readonly',
        ]),
      ),
    },
  },
  {
    files: ['**/*spec.ts'],
    extends: [jest.configs['flat/recommended']],
    rules: {
      // Assertions may live in helpers that compare whole Error bodies.
      'jest/expect-expect': ['error', { assertFunctionNames: ['expect', 'expect*', 'fc.assert'] }],
    },
  },
);

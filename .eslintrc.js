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
const anything = { regex: '', message: 'The client must not import anything.' };

/**
 * @param {string[]} files
 * @param {...{ regex: string, message: string }} patterns
 */
const restrictImports = (files, ...patterns) => ({
  files,
  ignores: ['**/*.spec.ts'],
  rules: { 'no-restricted-imports': ['error', { patterns }] },
});

/** Files that import packages of `test/package.json`. They are linted where these packages are installed. */
const needTestPackages = [
  'test/**/*.{system,slow}-spec.ts',
  'test/{package,support}/**',
  'bench/**',
];

const hasTestPackages = existsSync('test/node_modules');
if (!hasTestPackages) {
  warn(`Not linted without \`npm run test:install\`: ${needTestPackages.join(' ')}`);
}

module.exports = defineConfig(
  // The baselines import packages that only the benchmark installs.
  { ignores: ['dist/**', 'coverage/**', '.bench/**', 'bench/dist/**', 'bench/baselines/**'] },
  { ignores: hasTestPackages ? [] : needTestPackages },
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
  restrictImports(['src/cli/**'], client),
  restrictImports(['src/plants/**'], outside),
  restrictImports(['src/client/*.mts'], anything),
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

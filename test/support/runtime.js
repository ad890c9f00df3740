// @ts-check
const { createRequire } = require('node:module');
const { compileFunction, constants } = require('node:vm');
const { default: Runtime } = require('jest-runtime');

/**
 * Loads packages and the modules of Node.js as Node.js does: once for all suites of a process. Jest
 * would load Nest anew for each suite, in a context of its own, which takes longer than most suites.
 * Files of the project are still loaded anew for each suite.
 */
module.exports = class extends Runtime {
  /** @param {ConstructorParameters<typeof Runtime>} args */
  constructor(...args) {
    super(...args);
    const executor = this['executor'];
    /** @type {(source: string, filename: string) => Function} */
    executor.compile = (source, filename) =>
      compileFunction(source, executor.injectedModuleParameters, {
        filename,
        importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
      });
  }

  /**
   * @param {string} from
   * @param {string} name
   * @returns {any}
   */
  requireModuleOrMock(from, name) {
    const isFile = name.startsWith('.') || name.startsWith('/');
    return isFile ? super.requireModuleOrMock(from, name) : createRequire(from)(name);
  }
};

/** Whether NODE_ENV is `production`, also in quotation marks. Then store and authentication must be configured. */
export function isProduction({ NODE_ENV = '' }: NodeJS.ProcessEnv): boolean {
  return /^(["'`]?)production\1$/.test(NODE_ENV.trim());
}

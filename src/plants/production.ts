/** Whether NODE_ENV is `production`, where store and authentication must be configured explicitly. */
export function isProduction({ NODE_ENV }: NodeJS.ProcessEnv): boolean {
  return NODE_ENV?.trim() === 'production';
}

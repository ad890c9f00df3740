/** Whether NODE_ENV is `production`, also in quotation marks. Then store and authentication must be configured. */
export function isProduction({ NODE_ENV = '' }: NodeJS.ProcessEnv): boolean {
  return /^(["'`]?)production\1$/.test(NODE_ENV.trim());
}

/**
 * Whether a name or an address, with or without brackets, is that of this machine only: RFC 6761 section 6.3, RFC 1122
 * section 3.2.1.3, RFC 4291 section 2.5.3.
 */
export function isLoopback(address: string): boolean {
  return ['localhost', '::1', '[::1]'].includes(address) || /^127(?:\.\d+){3}$/.test(address);
}

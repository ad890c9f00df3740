/** Whether a name or an address, with or without brackets, is that of this machine only (RFC 6761, 1122 and 4291). */
export function isLoopback(address: string): boolean {
  return ['localhost', '::1', '[::1]'].includes(address) || /^127(?:\.\d+){3}$/.test(address);
}

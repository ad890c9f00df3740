import { isIP } from 'node:net';

/**
 * Removes the port that some proxies add: `192.0.2.1:80` or `[2001:db8::1]:80`. Returns undefined if the text
 * is not an IP address, such as `unknown`, or if the connection has already been closed.
 */
export function parseAddress(text = ''): string | undefined {
  const address = text.replace(/^\[(.*)\](:\d+)?$|^([\d.]+):\d+$/, '$1$3');
  return isIP(address) ? address : undefined;
}

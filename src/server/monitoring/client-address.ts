import { isIP } from 'node:net';

/**
 * Removes the port that some proxies add to an address of `X-Forwarded-For`, at every hop: `192.0.2.1:80` or
 * `[2001:db8::1]:80`.
 */
export function removePorts(forwarded: string): string {
  const hops = forwarded.split(',').map((hop) => hop.trim());
  return hops.map((hop) => hop.replace(/^\[(.*)\](:\d+)?$|^([\d.]+):\d+$/, '$1$3')).join(', ');
}

/** Returns undefined if the text is not an IP address, such as `unknown`, or if the connection has already been closed. */
export function parseAddress(text = ''): string | undefined {
  return isIP(text) ? text : undefined;
}

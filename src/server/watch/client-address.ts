import { BlockList, isIP } from 'node:net';

/**
 * Returns the value of Fastify's option `trustProxy`: false, or a function that tells whether an address of
 * `X-Forwarded-For` is that of a trusted proxy, with or without a port.
 *
 * @param ranges addresses and ranges such as `10.0.0.0/8`
 */
export function trustProxies(ranges: readonly string[]): false | ((address: string) => boolean) {
  if (ranges.length === 0) return false;
  const trusted = new BlockList();
  for (const range of ranges) {
    const [address = '', bits = isIP(range) === 4 ? 32 : 128] = range.split('/');
    trusted.addSubnet(address, Number(bits), familyOf(address));
  }
  return (text) => {
    const address = parseAddress(text);
    return address !== undefined && trusted.check(address, familyOf(address));
  };
}

/**
 * Removes the port that some proxies add: `192.0.2.1:80` or `[2001:db8::1]:80`. Returns undefined if the text
 * is not an IP address, such as `unknown`, or if the connection has already been closed.
 */
export function parseAddress(text = ''): string | undefined {
  const address = text.replace(/^\[(.*)\](:\d+)?$|^([\d.]+):\d+$/, '$1$3');
  return isIP(address) ? address : undefined;
}

function familyOf(address: string): 'ipv4' | 'ipv6' {
  return isIP(address) === 4 ? 'ipv4' : 'ipv6';
}

import type { IncomingMessage } from 'node:http';
import { isIP, isIPv6 } from 'node:net';
import proxyAddr from '@fastify/proxy-addr';

/** The prefix with which a socket for IPv4 and IPv6 shows an IPv4 address, RFC 4291 section 2.5.5.2. */
const IPV4_MAPPED_PREFIX = '::ffff:';

/**
 * Creates a function that finds the address of the client behind trusted proxies, as Fastify's `request.ip` does.
 * Fastify creates the requests of targets that it cannot parse without its option `trustProxy`.
 *
 * The function returns undefined if the client has disconnected, or a trusted proxy forwarded something else.
 */
export function createAddressReader(
  trustedProxies: readonly string[],
): (request: IncomingMessage) => string | undefined {
  const isTrusted = proxyAddr.compile([...trustedProxies]);
  return (request) => {
    // Undefined if the client has disconnected.
    const address = proxyAddr(request, isTrusted) as string | undefined;
    return address !== undefined && isIP(address) > 0 ? formatAddress(address) : undefined;
  };
}

/** Returns an IPv4 address of a socket for IPv4 and IPv6 in its usual form. */
export function formatAddress(address: string): string {
  const isMapped = isIPv6(address) && address.toLowerCase().startsWith(IPV4_MAPPED_PREFIX);
  const rest = address.slice(IPV4_MAPPED_PREFIX.length);
  return isMapped && isIP(rest) === 4 ? rest : address;
}

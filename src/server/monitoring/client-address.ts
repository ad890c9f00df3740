const ADDRESS_WITH_PORT = /^\[(.*)\](:\d+)?$|^([\d.]+):\d+$/;

/** Removes the ports that some proxies add to `X-Forwarded-For`: `192.0.2.1:80` or `[2001:db8::1]:80`. */
export function removePorts(forwarded: string): string {
  return forwarded
    .split(',')
    .map((hop) => hop.trim().replace(ADDRESS_WITH_PORT, '$1$3'))
    .join(', ');
}

/**
 * Whether keys may be fetched from a URL. Nobody must be able to replace them in transit, so it is
 * `https:`, or `http:` to a loopback address. A URL with a user or password is refused, because URLs
 * are logged.
 */
export function isTrustworthyUrl(text: string): boolean {
  const url = URL.parse(text);
  if (url?.username !== '' || url.password !== '') return false;
  return url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url.hostname));
}

/** RFC 6761 section 6.3, RFC 1122 section 3.2.1.3, RFC 4291 section 2.5.3. */
function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '[::1]' || /^127(?:\.\d+){3}$/.test(host);
}

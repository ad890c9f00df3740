/**
 * Whether keys may be fetched from a URL: nobody on the way can exchange them, because it is `https:`
 * or never leaves the machine. A user or password in it is none of ours to send, or to log.
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

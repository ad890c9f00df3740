/** The largest response body, in bytes after decompression. */
const SIZE_LIMIT = 512 * 2 ** 10;

/**
 * Fetches a JSON document from a server that may be slow or compromised. It follows no redirect, which
 * could lead to a server that the operator does not trust.
 *
 * @param signal ends the fetch, also while the body is read
 * @throws Error when the response is not 2xx, not JSON or too large
 */
export async function fetchJson(url: string, signal: AbortSignal): Promise<unknown> {
  const headers = { accept: 'application/json, application/jwk-set+json' };
  const response = await fetch(url, { redirect: 'error', headers, signal });
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    size += chunk.length;
    if (size > SIZE_LIMIT) throw new Error(`the response is larger than ${SIZE_LIMIT} bytes`);
    chunks.push(chunk);
  }
  if (!response.ok) throw new Error(`the response has the status ${response.status}`);
  return JSON.parse(Buffer.concat(chunks).toString());
}

/**
 * Whether nobody can replace in transit what is fetched from a URL: it is `https:`, or `http:` to a
 * loopback address. One with a user or password is refused, because URLs are logged.
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

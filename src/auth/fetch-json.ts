/** How long a response may take, to its last byte, in milliseconds. */
const TIMEOUT = 5000;
/** The largest response body, in bytes after decompression. */
const SIZE_LIMIT = 512 * 2 ** 10;

/**
 * Fetches a JSON document from a server that may be slow or compromised. Does not follow redirects:
 * they could lead to a server that the operator does not trust.
 *
 * @throws Error when the status is not 2xx, or the body is not JSON, takes longer than 5 s or is larger
 *   than 512 KiB
 */
export async function fetchJson(url: string, signal: AbortSignal): Promise<unknown> {
  const response = await fetch(url, {
    redirect: 'error',
    headers: { accept: 'application/json, application/jwk-set+json' },
    signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT)]),
  });
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

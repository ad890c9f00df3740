/** How long an answer may take, to its last byte, in milliseconds. */
const TIMEOUT = 5000;
/** The largest answer, in bytes after decompression. */
const SIZE_LIMIT = 512 * 2 ** 10;

/**
 * Fetches a JSON document from a server that may be slow or gone bad. Redirects are not followed:
 * they could lead to where the operator never meant to go.
 *
 * @throws Error when there is no such document, it takes longer than 5 s or is larger than 512 KiB
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
    if (size > SIZE_LIMIT) throw new Error(`the answer is larger than ${SIZE_LIMIT} bytes`);
    chunks.push(chunk);
  }
  if (!response.ok) throw new Error(`the answer is ${response.status}`);
  return JSON.parse(Buffer.concat(chunks).toString());
}

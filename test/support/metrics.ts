import { AUTHORIZED } from './application';
import { HANG_MS } from './until';

/** Reads a metric without labels from a running service. NaN if the service does not have it. */
export async function readMetric(url: URL, name: string): Promise<number> {
  const options = { headers: AUTHORIZED, signal: AbortSignal.timeout(HANG_MS) };
  const text = await (await fetch(new URL('/metrics', url), options)).text();
  const line = text.split('\n').find((each) => each.startsWith(`${name} `));
  return Number(line?.slice(name.length + 1) ?? NaN);
}

/** Reads the resident memory of a running service, in MiB. */
export async function readResidentMemory(url: URL): Promise<number> {
  return (await readMetric(url, 'process_resident_memory_bytes')) / 2 ** 20;
}

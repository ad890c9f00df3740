import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { UnavailableError } from '../../plants';
import { BodyMemory } from './body-memory';

const MIB = 2 ** 20;
const CHUNKED = { 'transfer-encoding': 'chunked' };
const length = (bytes: number) => ({ 'content-length': String(bytes) });

describe('the memory for bodies', () => {
  // In 342 MiB of memory, 4 MiB of bodies at a time.
  let bodies: BodyMemory;
  beforeEach(() => {
    bodies = new BodyMemory(8 * MIB, 342 * MIB);
  });

  /** @returns the response that the memory is reserved for */
  function reserve(headers: Record<string, string>): PassThrough {
    const response = new PassThrough();
    bodies.reserve({ headers }, response);
    return response;
  }

  it('admits bodies up to the bound together, and again once one is answered', async () => {
    const response = reserve(length(MIB));
    for (let count = 1; count < 4; count++) reserve(length(MIB));

    expect(() => reserve(length(MIB))).toThrow(UnavailableError);

    await once(response.destroy(), 'close');
    reserve(length(MIB));
    expect(() => reserve(length(MIB))).toThrow(UnavailableError);
  });

  it('counts a body of unknown length as the largest, which is admitted alone', () => {
    reserve(CHUNKED);

    expect(() => reserve(CHUNKED)).toThrow(UnavailableError);
    expect(() => reserve(length(MIB))).toThrow(UnavailableError);
  });

  it('does not count small bodies', () => {
    reserve(CHUNKED);

    expect(() => reserve(length(1024))).not.toThrow();
  });
});

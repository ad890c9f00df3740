import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { UnavailableError } from '../plants';
import { BodyMemory } from './body-memory';

const MIB = 2 ** 20;
const CHUNKED = { 'transfer-encoding': 'chunked' };
const length = (bytes: number) => ({ 'content-length': String(bytes) });

describe('the memory for bodies', () => {
  // In 214 MiB of memory, 4 MiB of bodies at a time.
  let bodies: BodyMemory;
  beforeEach(() => {
    bodies = new BodyMemory(8 * MIB, 214 * MIB);
  });

  /** @returns the response to a request with a body */
  function reserve(headers: Record<string, string>): ServerResponse {
    const request = new IncomingMessage(new Socket());
    const response = new ServerResponse(request);
    bodies.reserve(Object.assign(request, { headers }), response);
    return response;
  }

  it('admits bodies up to the bound together, and again once one is answered', () => {
    const responses = Array.from({ length: 4 }, () => reserve(length(MIB)));

    expect(() => reserve(length(MIB))).toThrow(UnavailableError);

    responses[0]?.emit('close');
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

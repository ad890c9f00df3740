import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { UnavailableError } from '../errors/errors';
import { BodyMemory } from './body-memory';

const MIB = 2 ** 20;

const createResponse = () => new ServerResponse(new IncomingMessage(new Socket()));

describe('BodyMemory', () => {
  let bodies: BodyMemory;
  beforeEach(() => {
    // With this memory, bodies may take 4 MiB together.
    jest.spyOn(process, 'constrainedMemory').mockReturnValue(342 * MIB);
    bodies = new BodyMemory();
  });
  afterEach(() => {
    jest.restoreAllMocks();
  });

  /** Reserves memory for a body. Returns the response, whose `close` event releases the memory. */
  function reserve(size: number, response = createResponse()): ServerResponse {
    expect(bodies.reserve(size, response)).toBeUndefined();
    return response;
  }
  const expectRejection = (size: number): void => {
    expect(bodies.reserve(size, createResponse())).toBeInstanceOf(UnavailableError);
  };

  it('accepts bodies up to the limit together, and further bodies after a response', () => {
    const response = reserve(MIB);
    for (let count = 1; count < 4; count++) reserve(MIB);

    expectRejection(MIB);

    response.emit('close');
    reserve(MIB);
    expectRejection(MIB);
  });

  it('counts the received bytes of a body once', () => {
    const response = reserve(2 * MIB);
    for (const size of [3, 3.5, 4]) reserve(size * MIB, response);

    expectRejection(4096);
  });

  it('accepts a single body beyond the limit', () => {
    const response = reserve(4 * MIB);

    expect(reserve(8 * MIB, response)).toBe(response);
  });

  it('does not count small bodies', () => {
    reserve(8 * MIB);

    expect(reserve(4095)).toBeDefined();
  });
});

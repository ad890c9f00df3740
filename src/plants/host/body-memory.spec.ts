import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { UnavailableError } from '../errors/errors';
import { BodyMemory } from './body-memory';

const MIB = 2 ** 20;

const startResponse = () => new ServerResponse(new IncomingMessage(new Socket()));

describe('BodyMemory', () => {
  let bodies: BodyMemory;
  beforeEach(() => {
    // That is 4 MiB of bodies at a time.
    jest.spyOn(process, 'constrainedMemory').mockReturnValue(342 * MIB);
    bodies = new BodyMemory();
  });
  afterEach(() => {
    jest.restoreAllMocks();
  });

  /** @returns the response until which the bytes are counted */
  function receive(size: number, response = startResponse()): ServerResponse {
    expect(bodies.reserve(size, response)).toBeUndefined();
    return response;
  }
  const expectNoRoom = (size: number): void => {
    expect(bodies.reserve(size, startResponse())).toBeInstanceOf(UnavailableError);
  };

  it('accepts bodies up to the limit together, and further bodies after a response', () => {
    const response = receive(MIB);
    for (let count = 1; count < 4; count++) receive(MIB);

    expectNoRoom(MIB);

    response.emit('close');
    receive(MIB);
    expectNoRoom(MIB);
  });

  it('counts the received bytes of a body once', () => {
    const response = receive(2 * MIB);
    for (const size of [3, 3.5, 4]) receive(size * MIB, response);

    expectNoRoom(4096);
  });

  it('accepts a single body beyond the limit', () => {
    const response = receive(4 * MIB);

    expect(receive(8 * MIB, response)).toBe(response);
  });

  it('does not count small bodies', () => {
    receive(8 * MIB);

    expect(receive(4095)).toBeDefined();
  });
});

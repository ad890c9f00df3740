import type { IncomingMessage } from 'node:http';
import { Inject, Injectable, type PipeTransform } from '@nestjs/common';
import { NewPlantDto } from './plant/plant.dto';
import { BodyTooLargeError, InvalidPlantError, NotJsonError } from './errors/errors';
import { decodeBody, hasBody } from './http/body';
import { assertJsonContent } from './http/media-type';
import { type HostRequest, nodeRequest, notesOf } from './http/request';
import { parseJson } from './plant/json';
import { PLANTS_OPTIONS } from './options/plants.options';
import type { ResolvedOptions } from './options/resolve-options';

/**
 * Parses the body that the application has read as a {@link NewPlantDto}. Every id is exact if the application keeps
 * the bytes of the body (`rawBody: true`).
 * @throws PlantStoreError 40001, 40002, 40004 or 40005 when the content is rejected
 */
@Injectable()
export class NewPlantPipe implements PipeTransform<HostRequest> {
  constructor(@Inject(PLANTS_OPTIONS) private readonly options: ResolvedOptions) {}

  transform(request: HostRequest): NewPlantDto {
    const { bodyLimit: limit } = this.options;
    const message = nodeRequest(request);
    assertJsonContent(message);
    if (Number(message.headers['content-length'] ?? 0) > limit) throw new BodyTooLargeError(limit);
    const newPlant = NewPlantDto.from(parseContent(request, limit));
    notesOf(request).plantId = newPlant.id;
    return newPlant;
  }
}

/** @returns the JSON value of the body, with an exact id */
function parseContent(request: HostRequest, limit: number): unknown {
  const content = request.rawBody ?? request.body;
  if (content === undefined) {
    assertNothingUnread(nodeRequest(request));
    throw new NotJsonError('The body is empty.');
  }
  if (!Buffer.isBuffer(content)) return restoreId(content);
  if (content.length > limit) throw new BodyTooLargeError(limit);
  return parseJson(decodeBody(content));
}

/** @throws Error, which is logged and gets 500, when the application has no parser that reads the body */
function assertNothingUnread(message: IncomingMessage): void {
  const isEmpty = !hasBody(message) || message.headers['content-length'] === '0';
  if (isEmpty || message.readableEnded) return;
  throw new Error(
    'No parser of the application has read the body. Create the application with rawBody: true, and not with bodyParser: false.',
  );
}

/** Converts the id of a body that a parser of the host has parsed to a bigint, unless it may be rounded. */
function restoreId(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || !('id' in value)) return value;
  const { id } = value;
  if (typeof id !== 'number' || !Number.isInteger(id)) return value;
  if (Number.isSafeInteger(id)) return { ...value, id: BigInt(id) };
  throw new InvalidPlantError(
    'Not a NewPlant: id must be from -(2^53 - 1) to 2^53 - 1, because this server rounds larger numbers. To accept every id, create the application with rawBody: true.',
  );
}

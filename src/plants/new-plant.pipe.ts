import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import { Inject, Injectable, type PipeTransform } from '@nestjs/common';
import { NewPlantDto } from './plant/plant.dto';
import {
  BodyTooLargeError,
  InvalidPlantError,
  MalformedRequestError,
  NotJsonError,
} from './errors/errors';
import { assertJsonContent } from './http/media-type';
import { type HostRequest, nodeRequest, notesOf } from './http/request';
import { parseJson } from './plant/json';
import { PLANTS_OPTIONS } from './options/plants.options';
import type { ResolvedOptions } from './options/resolve-options';

/**
 * Reads the content of a request as a {@link NewPlantDto}. The content is exact if the body is unread, or if the host
 * keeps its bytes (`rawBody: true`).
 * @throws PlantStoreError 40001, 40002, 40004 or 40005 when the content is rejected
 */
@Injectable()
export class NewPlantPipe implements PipeTransform<HostRequest> {
  constructor(@Inject(PLANTS_OPTIONS) private readonly options: ResolvedOptions) {}

  async transform(request: HostRequest): Promise<NewPlantDto> {
    const { bodyLimit: limit } = this.options;
    const message = nodeRequest(request);
    assertJsonContent(message);
    if (Number(message.headers['content-length'] ?? 0) > limit) throw new BodyTooLargeError(limit);
    const parsed = request.rawBody ?? request.body;
    const content = parsed === undefined ? await readBody(message, limit) : parsed;
    const newPlant = NewPlantDto.from(
      Buffer.isBuffer(content) ? parseBytes(content, limit) : restoreId(content),
    );
    notesOf(request).plantId = newPlant.id;
    return newPlant;
  }
}

function parseBytes(bytes: Buffer, limit: number): unknown {
  if (bytes.length > limit) throw new BodyTooLargeError(limit);
  if (bytes.length === 0) throw new NotJsonError('The body is empty.');
  if (!isUtf8(bytes)) throw new NotJsonError('The body is not UTF-8.');
  return parseJson(bytes.toString());
}

/** Reads an unread body. @throws PlantStoreError when it is larger than the limit in bytes, or incomplete */
function readBody(message: IncomingMessage, limit: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const receive = (chunk: Buffer): void => {
      chunks.push(chunk);
      size += chunk.length;
      if (size <= limit) return;
      // Discard the rest until the response is sent. A body without Content-Length may never end.
      message.off('data', receive).resume();
      reject(new BodyTooLargeError(limit));
    };
    const fail = (): void => {
      reject(new MalformedRequestError('The request ended before its body was complete.'));
    };
    // An empty body may have ended already.
    if (message.readableEnded) resolve(Buffer.alloc(0));
    else if (message.destroyed) fail();
    message.on('data', receive).on('error', fail).on('close', fail);
    message.on('end', () => {
      // The request closes after each body: an error for it would cost every request a stack trace.
      message.off('close', fail);
      resolve(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks));
    });
  });
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

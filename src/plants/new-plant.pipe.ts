import type { IncomingMessage } from 'node:http';
import { Inject, Injectable, Logger, type PipeTransform } from '@nestjs/common';
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
 * the bytes of the body (`rawBody: true`) or its text.
 * @throws PlantStoreError 40001, 40002, 40004 or 40005 when the content is rejected
 */
@Injectable()
export class NewPlantPipe implements PipeTransform<HostRequest> {
  private hasWarned = false;

  constructor(@Inject(PLANTS_OPTIONS) private readonly options: ResolvedOptions) {}

  transform(request: HostRequest): NewPlantDto {
    const { bodyLimit: limit } = this.options;
    const message = nodeRequest(request);
    assertJsonContent(message);
    if (Number(message.headers['content-length'] ?? 0) > limit) throw new BodyTooLargeError(limit);
    const newPlant = NewPlantDto.from(this.parseContent(request));
    notesOf(request).plantId = newPlant.id;
    return newPlant;
  }

  /** @returns the JSON value of the body. Its id is exact, unless a parser of the application has rounded it */
  private parseContent(request: HostRequest): unknown {
    const { bodyLimit: limit } = this.options;
    const { rawBody, body } = request;
    const content = rawBody ?? body;
    if (Buffer.isBuffer(content)) {
      if (content.length > limit) throw new BodyTooLargeError(limit);
      return parseJson(decodeBody(content));
    }
    const message = nodeRequest(request);
    if (content === undefined) {
      assertNothingUnread(message);
      throw new NotJsonError('The body is empty.');
    }
    if (typeof content === 'string') {
      if (isWholeBody(content, message)) return parseText(content, limit);
      if (rawBody !== undefined) {
        throw new NotJsonError('The body is not UTF-8, or begins with a byte order mark.');
      }
      // Otherwise a parser has parsed a JSON string, which is not a plant.
    }
    this.warnOfRounding();
    return restoreId(content);
  }

  /** Logs once what the application's parser means for ids. Before a body arrives, Nest does not say how it is parsed. */
  private warnOfRounding(): void {
    if (this.hasWarned) return;
    this.hasWarned = true;
    new Logger('PlantStore').warn(
      'A parser of the application rounds ids above 2^53, which are rejected. To accept every id, create the application with rawBody: true.',
    );
  }
}

/**
 * Whether a text is a whole body: it has as many bytes as the request announces. A JSON string that a parser has parsed is
 * shorter, and a text in which a decoder has replaced bytes has another length.
 */
function isWholeBody(text: string, { headers }: IncomingMessage): boolean {
  const length = headers['content-length'];
  return length === undefined || Number(length) === Buffer.byteLength(text);
}

function parseText(text: string, limit: number): unknown {
  if (Buffer.byteLength(text) > limit) throw new BodyTooLargeError(limit);
  if (text === '') throw new NotJsonError('The body is empty.');
  return parseJson(text);
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

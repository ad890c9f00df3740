import { isUtf8 } from 'node:buffer';
import {
  type ExecutionContext,
  Inject,
  Injectable,
  Logger,
  type PipeTransform,
} from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { NewPlantDto } from './dto/plant.dto';
import { BodyTooLargeError, InvalidPlantError, NotJsonError } from './errors/errors';
import { BodyMemory } from './host/body-memory';
import { bodyOf } from './host/fastify';
import { disableHostBodyParsers } from './host/own-body';
import { assertLength, readBody } from './host/read-body';
import { assertJsonContent } from './http/media-type';
import { type HostRequest, type HostResponse, nodeRequest, nodeResponse } from './http/request';
import { parseJson } from './json';
import { BODY_LIMIT } from './plants.options';

/**
 * Reads the content of a request as a {@link NewPlantDto}, exactly, or rejects it. Properties that the contract
 * does not name are ignored. If a property occurs twice, the last one is used.
 *
 * @throws PlantStoreError when the content is not declared as plain JSON in UTF-8
 * @throws NotJsonError when it is not JSON
 * @throws BodyTooLargeError when it is larger than the limit
 * @throws UnavailableError when there is no memory for it
 * @throws InvalidPlantError when it is JSON but not a valid NewPlant
 */
@Injectable()
export class NewPlantPipe implements PipeTransform<ExecutionContext> {
  private readonly logger = new Logger('PlantsModule');
  private hasWarned = false;

  constructor(
    @Inject(BODY_LIMIT) private readonly limit: number,
    private readonly memory: BodyMemory,
    host: HttpAdapterHost,
  ) {
    disableHostBodyParsers(host);
  }

  async transform(context: ExecutionContext): Promise<NewPlantDto> {
    const http = context.switchToHttp();
    const request = http.getRequest<HostRequest>();
    const message = nodeRequest(request);
    assertJsonContent(message);
    const content = await this.readContent(request, http.getResponse<HostResponse>());
    const newPlant = NewPlantDto.from(
      Buffer.isBuffer(content) ? parseBytes(content) : restoreId(content),
    );
    // For the access log.
    request.plantId = newPlant.id;
    return newPlant;
  }

  /** Returns the raw body, or the parsed body if a parser of the host has already read it. */
  private readContent(request: HostRequest, response: HostResponse): unknown {
    const message = nodeRequest(request);
    // An empty body that was read to its end counts as unread, because it has no data.
    if (!bodyOf(message).readableDidRead) {
      return readBody(message, nodeResponse(response), this.limit, this.memory);
    }
    const content = request.rawBody ?? request.body;
    if (Buffer.isBuffer(content)) {
      if (content.length > this.limit) throw new BodyTooLargeError(this.limit);
      return content;
    }
    assertLength(message, this.limit);
    if (!this.hasWarned) {
      this.hasWarned = true;
      this.logger.warn(
        `Middleware of the application parses the bodies of requests to ${message.url ?? ''} before PlantsModule can read them. Therefore ids above 2^53 are rejected, and that middleware responds to malformed JSON. Exclude this path from middleware that reads bodies, or create the application with rawBody: true.`,
      );
    }
    return content;
  }
}

function parseBytes(bytes: Buffer): unknown {
  if (bytes.length === 0) throw new NotJsonError('The body is empty.');
  if (!isUtf8(bytes)) throw new NotJsonError('The body is not UTF-8.');
  return parseJson(bytes.toString());
}

/**
 * Converts the id of a body that a parser of the host has parsed to a bigint.
 *
 * @throws InvalidPlantError when the parser may have rounded the id
 */
function restoreId(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || !('id' in value)) return value;
  const { id } = value;
  if (typeof id !== 'number' || !Number.isInteger(id)) return value;
  if (Number.isSafeInteger(id)) return { ...value, id: BigInt(id) };
  throw new InvalidPlantError(
    'Not a NewPlant: id must be from -(2^53 - 1) to 2^53 - 1, because this server rounds larger numbers.',
  );
}

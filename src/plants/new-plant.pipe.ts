import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import { Inject, Injectable, Logger, ValidationPipe } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import * as transformerPackage from 'class-transformer';
import * as validatorPackage from 'class-validator';
import { NewPlantDto } from './dto/plant.dto';
import { InvalidPlantError, NotJsonError } from './errors/errors';
import { keepParsersAway } from './host/own-body';
import { readBody } from './host/read-body';
import { assertJsonContent } from './http/media-type';
import { type HostRequest, nodeRequest } from './http/request';
import {
  candidateOf,
  copyPlant,
  isNewPlant,
  type NewPlantCandidate,
  parseCandidate,
  toInvalidPlantError,
  withoutDepth,
} from './new-plant';
import { validationChannel } from './plants.channels';
import { BODY_LIMIT } from './plants.options';

/**
 * Reads the content of a request as a {@link NewPlantDto}, exactly, or refuses it. Members that the
 * contract does not name are ignored; of a member given twice the last one counts.
 *
 * A plant that meets the rules is recognised at once. class-validator explains every refusal, by the
 * decorators of the DTO.
 *
 * @throws PlantStoreError when the content is not declared as plain JSON in UTF-8
 * @throws NotJsonError when it is not JSON
 * @throws BodyTooLargeError when it is larger than the limit
 * @throws InvalidPlantError when it is JSON of another shape
 */
@Injectable()
export class NewPlantPipe extends ValidationPipe {
  private readonly logger = new Logger('PlantsModule');
  private hasWarned = false;

  constructor(
    @Inject(BODY_LIMIT) private readonly limit: number,
    host: HttpAdapterHost,
  ) {
    super({
      expectedType: NewPlantDto,
      validateCustomDecorators: true,
      transform: true,
      exceptionFactory: toInvalidPlantError,
      transformerPackage,
      validatorPackage,
    });
    keepParsersAway(host, limit);
  }

  override async transform(request: HostRequest): Promise<NewPlantDto> {
    const message = nodeRequest(request);
    assertJsonContent(message);
    const content = await this.contentOf(request);
    const validate = (): Promise<NewPlantDto> => this.validateContent(content, message);
    const newPlant = await (validationChannel.hasSubscribers
      ? validationChannel.tracePromise(validate, {})
      : validate());
    // For logs, as the caller is.
    request.plantId = newPlant.id;
    return newPlant;
  }

  /** The bytes of the body; what a parser has made of them, if one of the host was faster. */
  private async contentOf(request: HostRequest): Promise<unknown> {
    const content = request.rawBody ?? request.body;
    if (Buffer.isBuffer(content)) return content;
    if (content instanceof Error) throw content;
    const message = nodeRequest(request);
    if (!message.readableDidRead) return readBody(message, this.limit);
    if (!this.hasWarned) {
      this.hasWarned = true;
      this.logger.warn(
        `Middleware of the application parses the bodies of requests to ${message.url ?? ''} before PlantsModule can read them. So ids above 2^53 are refused, and PlantsModule does not answer malformed JSON. Exclude this path from middleware that reads bodies, or create the application with rawBody: true.`,
      );
    }
    return content;
  }

  private async validateContent(content: unknown, message: IncomingMessage): Promise<NewPlantDto> {
    const candidate = Buffer.isBuffer(content) ? readBytes(content) : readParsed(content, message);
    if (isNewPlant(candidate)) return copyPlant(candidate);
    return super.transform(withoutDepth(candidate), { type: 'custom' }) as Promise<NewPlantDto>;
  }
}

function readBytes(bytes: Buffer): NewPlantCandidate {
  if (bytes.length === 0) throw new NotJsonError('The body is empty.');
  if (!isUtf8(bytes)) throw new NotJsonError('The body is not UTF-8.');
  return parseCandidate(bytes.toString());
}

/** Reads a body that the host's parser has already parsed, so that ids above 2^53 may be rounded. */
function readParsed(value: unknown, { headers }: IncomingMessage): NewPlantCandidate {
  if (headers['content-length'] === '0') throw new NotJsonError('The body is empty.');
  const { id, name, tag } = candidateOf(value);
  if (typeof id !== 'number' || !Number.isInteger(id)) return { id, name, tag };
  if (Number.isSafeInteger(id)) return { id: BigInt(id), name, tag };
  throw new InvalidPlantError(
    'Not a NewPlant: id must be from -(2^53 - 1) to 2^53 - 1, because this server rounds larger numbers.',
  );
}

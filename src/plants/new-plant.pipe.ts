import { isUtf8 } from 'node:buffer';
import { Inject, Injectable, type PipeTransform } from '@nestjs/common';
import { NewPlantDto } from './dto/plant.dto';
import { BodyTooLargeError, InvalidPlantError, NotJsonError } from './errors/errors';
import { assertJsonContent } from './http/media-type';
import { assertLength, readBody } from './http/read-body';
import { type HostRequest, nodeRequest, notesOf } from './http/request';
import { parseJson } from './json';
import { PLANTS_OPTIONS, type ResolvedOptions } from './plants.options';

/**
 * Reads the content of a request as a {@link NewPlantDto}, or rejects it. The content is exact if the body is
 * unread, or if the host keeps its bytes (`rawBody: true`). Properties that the contract does not name are
 * ignored. If a property occurs twice, the last one is used.
 *
 * @throws PlantStoreError when the content is not declared as plain JSON in UTF-8
 * @throws NotJsonError when it is not JSON
 * @throws BodyTooLargeError when it is larger than the limit
 * @throws InvalidPlantError when it is JSON but not a valid NewPlant
 */
@Injectable()
export class NewPlantPipe implements PipeTransform<HostRequest> {
  private readonly limit: number;

  constructor(@Inject(PLANTS_OPTIONS) { bodyLimit }: ResolvedOptions) {
    this.limit = bodyLimit;
  }

  async transform(request: HostRequest): Promise<NewPlantDto> {
    const message = nodeRequest(request);
    assertJsonContent(message);
    assertLength(message, this.limit);
    const parsed = request.rawBody ?? request.body;
    const content = parsed === undefined ? await readBody(message, this.limit) : parsed;
    const newPlant = NewPlantDto.from(
      Buffer.isBuffer(content) ? this.parseBytes(content) : restoreId(content),
    );
    notesOf(request).plantId = newPlant.id;
    return newPlant;
  }

  private parseBytes(bytes: Buffer): unknown {
    if (bytes.length > this.limit) throw new BodyTooLargeError(this.limit);
    if (bytes.length === 0) throw new NotJsonError('The body is empty.');
    if (!isUtf8(bytes)) throw new NotJsonError('The body is not UTF-8.');
    return parseJson(bytes.toString());
  }
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
    'Not a NewPlant: id must be from -(2^53 - 1) to 2^53 - 1, because this server rounds larger numbers. To accept every id, create the application with rawBody: true.',
  );
}

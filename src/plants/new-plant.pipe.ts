import { isUtf8 } from 'node:buffer';
import { Injectable, type PipeTransform } from '@nestjs/common';
import { validateSync } from 'class-validator';
import { InvalidPlantError, NotJsonError, UnsupportedMediaTypeError } from '../errors';
import { isJsonMediaType } from '../http/media-type';
import { NewPlantDto } from './dto/new-plant.dto';
import { parseInt64 } from './int64';
import { sourceOfMember } from './json-member';
import type { RequestContent } from './request-content.decorator';

/**
 * Turns the bytes of a request into a {@link NewPlantDto}, exactly, or refuses them.
 *
 * Members that the contract does not name are ignored; of a member given twice the last one counts.
 *
 * @throws UnsupportedMediaTypeError when the bytes are not declared as plain JSON in UTF-8
 * @throws NotJsonError when they are not JSON
 * @throws InvalidPlantError when they are JSON of another shape
 */
@Injectable()
export class NewPlantPipe implements PipeTransform<RequestContent, NewPlantDto> {
  transform({ types, encoding, bytes }: RequestContent): NewPlantDto {
    const [type] = types;
    if (type === undefined || types.length > 1 || !isJsonMediaType(type)) {
      throw new UnsupportedMediaTypeError('The Content-Type must be application/json, in UTF-8.');
    }
    if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
      throw new UnsupportedMediaTypeError('The body must not have a Content-Encoding.');
    }
    return toNewPlant(decode(bytes));
  }
}

function decode(bytes: Uint8Array | undefined): string {
  if (bytes === undefined || bytes.length === 0) throw new NotJsonError('The body is empty.');
  if (!isUtf8(bytes)) throw new NotJsonError('The body is not UTF-8.');
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString();
}

function toNewPlant(text: string): NewPlantDto {
  const members = parseObject(text);
  const plant = Object.assign(new NewPlantDto(), {
    id: exactId(members.id, text),
    name: members.name,
    tag: members.tag,
  });

  const faults = validateSync(plant);
  if (faults.length > 0) {
    const reasons = faults.flatMap(({ constraints = {} }) => Object.values(constraints));
    throw new InvalidPlantError(`Not a NewPlant: ${reasons.join('; ')}.`);
  }
  return plant;
}

function parseObject(text: string): Partial<Record<keyof NewPlantDto, unknown>> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new NotJsonError(`The body is not JSON: ${(cause as SyntaxError).message}`);
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new InvalidPlantError('Not a NewPlant: the body must be a JSON object.');
  }
  return value;
}

/** The id as a bigint when it is an int64 as written, or else what stands there, for the rules to judge. */
function exactId(id: unknown, text: string): unknown {
  if (typeof id !== 'number') return id;
  return parseInt64(sourceOfMember(text, 'id') ?? '') ?? id;
}

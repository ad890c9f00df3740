import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import { Inject, Injectable, Logger, Optional, type PipeTransform } from '@nestjs/common';
import { validateSync } from 'class-validator';
import { InvalidPlantError, NotJsonError, UnsupportedMediaTypeError } from '../errors';
import { fieldValues, type HostRequest, isJsonMediaType, nodeRequest } from '../http';
import { isExactText } from './dto/new-plant.decorators';
import { NewPlantDto } from './dto/plant.dto';
import { readBody, wasRead } from './host/read-body';
import { isInt64 } from './int64';
import { describeJsonError, exactId } from './json';
import type { Plant } from './plant';
import { validationChannel } from './plants.channels';
import { BODY_LIMIT, DEFAULT_BODY_LIMIT } from './plants.options';

/**
 * Reads the content of a request as a {@link NewPlantDto}, exactly, or refuses it.
 *
 * Members that the contract does not name are ignored; of a member given twice the last one counts.
 *
 * @throws UnsupportedMediaTypeError when the content is not declared as plain JSON in UTF-8
 * @throws NotJsonError when it is not JSON
 * @throws PlantStoreError `bodyTooLarge` when it is larger than the limit
 * @throws InvalidPlantError when it is JSON of another shape
 */
@Injectable()
export class NewPlantPipe implements PipeTransform<HostRequest> {
  private hasWarned = false;

  constructor(
    @Optional() @Inject(BODY_LIMIT) private readonly limit: number = DEFAULT_BODY_LIMIT,
  ) {}

  transform(request: HostRequest): NewPlantDto | Promise<NewPlantDto> {
    const content = request.rawBody ?? request.body;
    const message = nodeRequest(request);
    if (Buffer.isBuffer(content)) return validate(message, () => readBytes(content));
    if (!wasRead(message)) return this.receive(request);
    this.warn(message);
    return validate(message, () => readParsed(content, message));
  }

  private async receive(request: HostRequest): Promise<NewPlantDto> {
    const message = nodeRequest(request);
    assertJsonContent(message);
    const bytes = await readBody(request, this.limit);
    return validate(message, () => readBytes(bytes));
  }

  private warn({ url }: IncomingMessage): void {
    if (this.hasWarned) return;
    this.hasWarned = true;
    new Logger('PlantsModule').warn(
      `Middleware of the application parses the bodies of requests to ${url ?? ''} before PlantsModule can read them. So ids above 2^53 are refused, and PlantsModule does not answer malformed JSON. Exclude this path from middleware that reads bodies, or create the application with rawBody: true.`,
    );
  }
}

/** Validates what is read of the content of a request, if it is declared as JSON. */
function validate(message: IncomingMessage, read: () => NewPlantCandidate): NewPlantDto {
  const validateContent = (): NewPlantDto => {
    assertJsonContent(message);
    return validateNewPlant(read());
  };
  const { hasSubscribers } = validationChannel;
  return hasSubscribers ? validationChannel.traceSync(validateContent, {}) : validateContent();
}

function assertJsonContent(message: IncomingMessage): void {
  const types = fieldValues(message, 'content-type');
  if (types.length !== 1 || !types.every(isJsonMediaType)) {
    throw new UnsupportedMediaTypeError('The Content-Type must be application/json, in UTF-8.');
  }
  // RFC 9110 section 8.4: a list of codings. `identity` stands for no coding.
  const codings = message.headers['content-encoding']?.split(',');
  if (codings?.some((coding) => !/^(?:identity)?$/i.test(coding.trim()))) {
    throw new UnsupportedMediaTypeError('The body must not have a Content-Encoding.');
  }
}

function readBytes(bytes: Buffer): NewPlantCandidate {
  if (bytes.length === 0) throw new NotJsonError('The body is empty.');
  if (!isUtf8(bytes)) throw new NotJsonError('The body is not UTF-8.');
  const text = bytes.toString();
  const { id, name, tag } = membersOf(parse(text));
  return { id: typeof id === 'number' ? exactId(id, text) : id, name, tag };
}

/** Reads a body that the host's parser has already parsed, so that ids above 2^53 may be rounded. */
function readParsed(value: unknown, { headers }: IncomingMessage): NewPlantCandidate {
  if (headers['content-length'] === '0') throw new NotJsonError('The body is empty.');
  const { id, name, tag } = membersOf(value);
  if (typeof id !== 'number' || !Number.isInteger(id)) return { id, name, tag };
  if (Number.isSafeInteger(id)) return { id: BigInt(id), name, tag };
  throw new InvalidPlantError(
    'Not a NewPlant: id must be from -(2^53 - 1) to 2^53 - 1, because this server rounds larger numbers.',
  );
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new NotJsonError(`The body is not JSON: ${describeJsonError(error)}.`);
  }
}

function membersOf(value: unknown): NewPlantCandidate {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new InvalidPlantError('Not a NewPlant: the body must be a JSON object.');
  }
  return value;
}

/** Values that stand where a NewPlant has its members, of any type. */
export type NewPlantCandidate = { readonly [Member in keyof Plant]?: unknown };

/**
 * Whether a candidate meets the rules on {@link NewPlantDto}: the verdict of class-validator, which
 * needs some twenty times as long for it and is asked only to explain a refusal.
 */
export function isValidNewPlant(candidate: NewPlantCandidate): candidate is Plant {
  const { id, name, tag } = candidate;
  return isInt64(id) && isExactText(name) && (tag === undefined || isExactText(tag));
}

/**
 * @returns a copy of the three members; whatever else the candidate has is left out
 * @throws InvalidPlantError naming each member at fault and why
 */
export function validateNewPlant(candidate: NewPlantCandidate): NewPlantDto {
  const plant = copyPlant(candidate);
  if (isValidNewPlant(plant)) return plant;
  const reasons = validateSync(plant).flatMap(({ constraints = {} }) => Object.values(constraints));
  throw new InvalidPlantError(`Not a NewPlant: ${reasons.join('; ')}.`);
}

/** Copies the three members of a plant. */
export function copyPlant({ id, name, tag }: NewPlantCandidate): NewPlantDto & NewPlantCandidate {
  const plant: { -readonly [Member in keyof Plant]?: unknown } = new NewPlantDto();
  plant.id = id;
  plant.name = name;
  if (tag !== undefined) plant.tag = tag;
  return plant as NewPlantDto;
}

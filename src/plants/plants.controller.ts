import { Controller, HttpStatus, Post, Req, Res, UseFilters } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { Caller } from '../auth';
import {
  IdempotencyKeyReusedError,
  IdTakenError,
  PlantStoreError,
  UnavailableError,
} from '../errors';
import { ErrorFilter, type HostRequest, nodeRequest } from '../http';
import { NewPlantDto, newPlantExamples, PlantDto, plantExamples } from './dto/plant.dto';
import { keepBodiesUnread, ReadsBody } from './host/read-body';
import { IDEMPOTENCY_KEY, IDEMPOTENT_REPLAYED, idempotencyKeyOf } from './idempotency-key';
import { NewPlantPipe } from './new-plant.pipe';
import { type CreationEvent, creationChannel, type CreationOutcome } from './plants.channels';
import { PlantsService } from './plants.service';
import {
  ApiBody,
  ApiExtraModels,
  ApiHeader,
  ApiOkResponse,
  ApiOperation,
  ApiTags,
  schemaOf,
} from './swagger-decorators';

/**
 * `POST /plants`: specification, "Create plant".
 *
 * It reads the request and writes the response itself, refusals included, so that no global pipe of a
 * host reads the body first and no global interceptor wraps the answer. The filter answers what the
 * guard throws.
 */
@Controller()
@ApiTags('Plants')
@UseFilters(ErrorFilter)
export class PlantsController {
  constructor(
    private readonly plants: PlantsService,
    private readonly newPlant: NewPlantPipe,
    private readonly adapterHost: HttpAdapterHost,
    private readonly errors: ErrorFilter,
  ) {
    keepBodiesUnread(adapterHost);
  }

  @Post()
  @ReadsBody()
  @ApiOperation({
    summary: 'Creates a new plant in the store',
    description:
      'Answers once the plant is durable. An id that exists is refused, and the first plant stays as it was.',
  })
  @ApiExtraModels(NewPlantDto)
  @ApiBody({ schema: schemaOf(NewPlantDto), examples: newPlantExamples })
  @ApiHeader({
    name: IDEMPOTENCY_KEY,
    required: false,
    description:
      'Makes the creation safe to repeat: a repetition by the same caller, with the same key and the same plant, is answered like the first. Choose a new key for each plant, of 1 to 255 visible ASCII characters, as they are or as a quoted string of RFC 9651.',
    // Without an example, which Swagger UI would send with every request.
    schema: { type: 'string' },
  })
  @ApiOkResponse({
    description: 'Plant response',
    headers: {
      [IDEMPOTENT_REPLAYED]: {
        description:
          'Only in the answer to a repetition: an earlier request with this Idempotency-Key has stored the plant',
        required: false,
        schema: { type: 'string', enum: ['true'] },
      },
    },
    type: PlantDto,
    examples: plantExamples,
  })
  async create(@Req() request: HostRequest, @Res() response: unknown): Promise<void> {
    let newPlant: NewPlantDto | undefined;
    try {
      const key = idempotencyKeyOf(nodeRequest(request));
      const content = this.newPlant.transform(request);
      newPlant = content instanceof Promise ? await content : content;
      let isReplay = false;
      if (key === undefined) await this.plants.create(newPlant);
      else isReplay = await this.plants.createOnce(newPlant, key, callerOf(request));
      publish(request, newPlant, isReplay ? 'replayed' : 'created');

      const { httpAdapter } = this.adapterHost;
      if (httpAdapter.isHeadersSent(response)) return;
      if (isReplay) httpAdapter.setHeader(response, IDEMPOTENT_REPLAYED, 'true');
      const { name, tag } = newPlant;
      httpAdapter.reply(response, { name, tag } satisfies PlantDto, HttpStatus.OK);
    } catch (error) {
      publish(request, newPlant, outcomeOf(error));
      this.errors.answer(error, request, response);
    }
  }
}

/** The caller of a request, if our guard or one of the host has set it. What has no name is no caller. */
function callerOf({ caller }: HostRequest & { caller?: Partial<Caller> }): Caller | undefined {
  return typeof caller?.name === 'string' ? (caller as Caller) : undefined;
}

function publish(request: object, plant: NewPlantDto | undefined, outcome: CreationOutcome): void {
  if (!creationChannel.hasSubscribers) return;
  creationChannel.publish({ request, id: plant?.id, outcome } satisfies CreationEvent);
}

function outcomeOf(error: unknown): CreationOutcome {
  if (error instanceof IdTakenError || error instanceof IdempotencyKeyReusedError) return 'taken';
  if (error instanceof UnavailableError) return 'refused';
  return error instanceof PlantStoreError && error.getStatus() < 500 ? 'invalid' : 'unknown';
}

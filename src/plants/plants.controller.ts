import { Controller, HttpStatus, Post, Req, Res, UseFilters } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { IdTakenError, PlantStoreError, UnavailableError } from '../errors';
import { ErrorFilter, type HostRequest } from '../http';
import { ApiErrorResponses } from './api-error-responses.decorator';
import { NewPlantDto, newPlantExamples } from './dto/new-plant.dto';
import {
  ApiBody,
  ApiExtraModels,
  ApiOkResponse,
  ApiOperation,
  ApiTags,
  getSchemaPath,
} from './swagger-decorators';
import { PlantDto, plantExamples } from './dto/plant.dto';
import { NewPlantPipe } from './new-plant.pipe';
import { type CreationEvent, creationChannel, type CreationOutcome } from './plants.channels';
import { PlantsService } from './plants.service';

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
  ) {}

  @Post()
  @ApiOperation({
    summary: 'Creates a new plant in the store',
    description:
      'Answers once the plant is durable. An id that exists is refused, and the first plant stays as it was.',
  })
  @ApiExtraModels(NewPlantDto)
  @ApiBody({ schema: { $ref: getSchemaPath(NewPlantDto) }, examples: newPlantExamples })
  @ApiOkResponse({ description: 'Plant response', type: PlantDto, examples: plantExamples })
  @ApiErrorResponses()
  async create(@Req() request: HostRequest, @Res() response: unknown): Promise<void> {
    let newPlant: NewPlantDto | undefined;
    try {
      newPlant = this.newPlant.transform(request);
      const { name, tag } = await this.plants.create(newPlant);
      publish(request, newPlant, 'created');
      const plant: PlantDto = { name, tag };
      const { httpAdapter } = this.adapterHost;
      if (!httpAdapter.isHeadersSent(response)) httpAdapter.reply(response, plant, HttpStatus.OK);
    } catch (error) {
      publish(request, newPlant, outcomeOf(error));
      this.errors.answer(error, request, response);
    }
  }
}

function publish(request: object, plant: NewPlantDto | undefined, outcome: CreationOutcome): void {
  if (!creationChannel.hasSubscribers) return;
  creationChannel.publish({ request, id: plant?.id, outcome } satisfies CreationEvent);
}

function outcomeOf(error: unknown): CreationOutcome {
  if (error instanceof IdTakenError) return 'taken';
  if (error instanceof UnavailableError) return 'refused';
  return error instanceof PlantStoreError && error.getStatus() < 500 ? 'invalid' : 'unknown';
}

import {
  type CanActivate,
  Controller,
  HttpCode,
  Post,
  Req,
  Res,
  type Type,
  UseFilters,
  UseGuards,
} from '@nestjs/common';
import { BearerGuard } from './auth/bearer.guard';
import { ApiErrorResponses } from './http/error.dto';
import { NewPlantDto, newPlantExamples, PlantDto } from './plant/plant.dto';
import { CreateErrorFilter, ErrorFilter } from './http/error.filter';
import {
  callerOf,
  type HostRequest,
  HttpRequest,
  notesOf,
  InsertsPlants,
  ParsesRawBody,
} from './http/request';
import {
  IDEMPOTENCY_KEY,
  IDEMPOTENT_REPLAYED,
  IdempotencyKey,
  KEY_PATTERN,
} from './http/idempotency-key';
import { NewPlantPipe } from './new-plant.pipe';
import { contentOf, type Plant } from './plant/plant';
import { PlantsService } from './plants.service';
import {
  ApiBearerAuth,
  ApiBody,
  ApiHeader,
  ApiOkResponse,
  ApiOperation,
  ApiTags,
} from './plant/swagger-decorators';

/** The path of the route, without the global prefix of an application. */
export const PLANTS_PATH = 'plants';

/** `POST /plants`: specification, "Create plant". {@link protectWith} adds a guard. */
@Controller(PLANTS_PATH)
@UseFilters(ErrorFilter)
@ApiTags('Plants')
export class PlantsController {
  constructor(private readonly plants: PlantsService) {}

  @Post()
  @HttpCode(200)
  // Nest asks the filter of a method before that of its class.
  @UseFilters(CreateErrorFilter)
  @ParsesRawBody(true)
  @InsertsPlants(true)
  @ApiOperation({
    summary: 'Creates a new plant in the store',
    description:
      'Responds once the plant is durably stored. If a plant with this id already exists, the request is rejected and the stored plant is not changed.',
  })
  @ApiBody({ type: NewPlantDto, examples: newPlantExamples })
  @ApiHeader({
    name: IDEMPOTENCY_KEY,
    required: false,
    description:
      'Makes the request safe to retry: a retry by the same caller, with the same key and the same plant, gets the same response. Use a new key for each plant: 1 to 255 visible ASCII characters, bare or as an RFC 9651 quoted string.',
    // No example, because Swagger UI would send it with every request.
    schema: { type: 'string', minLength: 1, maxLength: 512, pattern: KEY_PATTERN.source },
  })
  @ApiOkResponse({
    description: 'Plant response',
    headers: {
      [IDEMPOTENT_REPLAYED]: {
        description:
          'Present only if an earlier request with this Idempotency-Key already stored the plant',
        required: false,
        schema: { type: 'string', enum: ['true'] },
      },
    },
    type: PlantDto,
  })
  @ApiErrorResponses(({ outcome }) => outcome !== undefined)
  async create(
    // Plant is an interface on purpose: if it were a class, a host's ValidationPipe with
    // `validateCustomDecorators` would validate the parameter as an instance of that class.
    @HttpRequest(NewPlantPipe) newPlant: Plant,
    @IdempotencyKey() idempotencyKey: string | undefined,
    @Req() request: HostRequest,
    @Res({ passthrough: true }) response: { header(name: string, value: string): unknown },
  ): Promise<PlantDto> {
    const notes = notesOf(request);
    // An unexpected error leaves this outcome. The lines below, or the filter, replace it.
    notes.outcome = 'unknown';
    const plant = await this.plants.create(newPlant, { idempotencyKey, caller: callerOf(notes) });
    notes.outcome = plant.isReplay ? 'replayed' : 'created';
    if (plant.isReplay) response.header(IDEMPOTENT_REPLAYED, 'true');
    // An instance, because interceptors of a host serialize it by the decorators of its class.
    return Object.assign(new PlantDto(), contentOf(plant));
  }
}

/**
 * Creates a subclass of the controller with a guard, because the decorators of one class would be the same in every
 * application of the process, and `overrideGuard` finds only guards in decorators.
 */
export function protectWith(guard: Type<CanActivate>): Type<PlantsController> {
  const GuardedController = class extends PlantsController {};
  // For the operation ids of the host's OpenAPI document.
  Object.defineProperty(GuardedController, 'name', { value: PlantsController.name });
  UseGuards(guard)(GuardedController);
  if (guard === BearerGuard) {
    ApiBearerAuth('bearerAuth')(GuardedController);
    ApiErrorResponses(({ status }) => [401, 403].includes(status))(GuardedController);
  }
  return GuardedController;
}

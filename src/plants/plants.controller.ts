import {
  type CanActivate,
  Controller,
  type ExecutionContext,
  HttpCode,
  Inject,
  Injectable,
  Post,
  Req,
  Res,
  UseFilters,
  UseGuards,
} from '@nestjs/common';
import { type Caller, CallerOfRequest } from './auth/caller';
import { ApiErrorResponses } from './dto/error.dto';
import { NewPlantDto, newPlantExamples, PlantDto, plantExamples } from './dto/plant.dto';
import { ReadsRawBody } from './host/own-body';
import { ErrorFilter } from './http/error.filter';
import { HttpContext, type HostRequest } from './http/request';
import {
  IDEMPOTENCY_KEY,
  IDEMPOTENT_REPLAYED,
  IdempotencyKey,
  KEY_PATTERN,
} from './idempotency-key';
import { NewPlantPipe } from './new-plant.pipe';
import { contentOf, type Plant } from './plant';
import { PlantsService } from './plants.service';
import {
  ApiBearerAuth,
  ApiBody,
  ApiExtraModels,
  ApiHeader,
  ApiOkResponse,
  ApiOperation,
  ApiTags,
  schemaOf,
} from './swagger-decorators';

/** The injection token of the route's guard: bearer tokens, the host's guard, or none. */
export const ROUTE_GUARD = Symbol('PlantsModule.guard');

/** Delegates to {@link ROUTE_GUARD}. `@UseGuards` needs a class. */
@Injectable()
class PlantsGuard implements CanActivate {
  constructor(@Inject(ROUTE_GUARD) private readonly guard: CanActivate) {}

  canActivate(context: ExecutionContext): ReturnType<CanActivate['canActivate']> {
    return this.guard.canActivate(context);
  }
}

/** The response method that Express and Fastify share. */
interface HostResponse {
  header(name: string, value: string): unknown;
}

/** The path of the route, without the global prefix of an application. */
export const PLANTS_PATH = 'plants';

/** `POST /plants`: specification, "Create plant". */
@Controller(PLANTS_PATH)
@UseGuards(PlantsGuard)
@UseFilters(ErrorFilter)
@ApiTags('Plants')
@ApiBearerAuth('bearerAuth')
@ApiErrorResponses()
export class PlantsController {
  constructor(private readonly plants: PlantsService) {}

  @Post()
  @HttpCode(200)
  @ReadsRawBody()
  @ApiOperation({
    summary: 'Creates a new plant in the store',
    description:
      'Responds once the plant is durably stored. If a plant with this id already exists, the request is rejected and the stored plant is not changed.',
  })
  @ApiExtraModels(NewPlantDto)
  @ApiBody({ schema: schemaOf(NewPlantDto), examples: newPlantExamples })
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
    examples: plantExamples,
  })
  async create(
    // The type is an interface, which leaves no metadata. With a class, a ValidationPipe of the host that has
    // `validateCustomDecorators` would validate the context of the request as an instance of the class.
    @HttpContext(NewPlantPipe) newPlant: Plant,
    @IdempotencyKey() idempotencyKey: string | undefined,
    @CallerOfRequest() caller: Caller | undefined,
    @Req() request: Pick<HostRequest, 'outcome'>,
    @Res({ passthrough: true }) response: HostResponse,
  ): Promise<PlantDto> {
    const plant = await this.plants.create(newPlant, { idempotencyKey, caller });
    request.outcome = plant.isReplay ? 'replayed' : 'created';
    if (plant.isReplay) response.header(IDEMPOTENT_REPLAYED, 'true');
    return contentOf(plant);
  }
}

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
import { ReadsBody } from './host/own-body';
import { ErrorFilter } from './http/error.filter';
import { HttpContext, type HostRequest } from './http/request';
import { IDEMPOTENCY_KEY, IDEMPOTENT_REPLAYED, IdempotencyKey, KEY_FIELD } from './idempotency-key';
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

/** The injection token of the guard that the options name: bearer tokens, one of the host, or none. */
export const ROUTE_GUARD = Symbol('PlantsModule.guard');

/** Applies that guard. Nest needs a class for the guard of a controller. */
@Injectable()
class PlantsGuard implements CanActivate {
  constructor(@Inject(ROUTE_GUARD) private readonly guard: CanActivate) {}

  canActivate(context: ExecutionContext): ReturnType<CanActivate['canActivate']> {
    return this.guard.canActivate(context);
  }
}

/** What both Express and Fastify have. */
interface HostResponse {
  header(name: string, value: string): unknown;
}

/** The path of the route, without the prefix that an application may set. */
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
    schema: { type: 'string', minLength: 1, maxLength: 512, pattern: KEY_FIELD.source },
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
  async create(
    // Typed by an interface, which leaves no metadata: a ValidationPipe of the host with
    // `validateCustomDecorators` would take the context of the request for an instance of a class here.
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

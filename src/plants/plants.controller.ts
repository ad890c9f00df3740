import { Controller, HttpCode, HttpStatus, Post } from '@nestjs/common';
import {
  ApiBody,
  ApiExtraModels,
  ApiOkResponse,
  ApiOperation,
  getSchemaPath,
} from '@nestjs/swagger';
import { ApiErrorResponses } from './api-error-responses.decorator';
import { NewPlantDto, newPlantExamples } from './dto/new-plant.dto';
import { PlantDto, plantExamples } from './dto/plant.dto';
import { NewPlantPipe } from './new-plant.pipe';
import { PlantsService } from './plants.service';
import { RequestContent } from './request-content.decorator';

/** `POST /plants`: specification, "Create plant". */
@Controller('plants')
export class PlantsController {
  constructor(private readonly plants: PlantsService) {}

  @Post()
  @HttpCode(HttpStatus.OK)
  @ApiOperation({
    operationId: 'createPlant',
    summary: 'Creates a new plant in the store',
    description:
      'Answers once the plant is durable. An id that exists is refused, and the first plant stays as it was.',
  })
  @ApiExtraModels(NewPlantDto)
  @ApiBody({ schema: { $ref: getSchemaPath(NewPlantDto) }, examples: newPlantExamples })
  @ApiOkResponse({ description: 'Plant response', type: PlantDto, examples: plantExamples })
  @ApiErrorResponses()
  async create(@RequestContent(NewPlantPipe) newPlant: NewPlantDto): Promise<PlantDto> {
    const { name, tag } = await this.plants.create(newPlant);
    return { name, tag };
  }
}

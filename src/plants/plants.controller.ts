import { Controller, HttpCode, HttpStatus, Post } from '@nestjs/common';
import { ApiBadRequestResponse, ApiBody, ApiOkResponse, ApiOperation } from '@nestjs/swagger';
import { ErrorDto } from './dto/error.dto';
import { NewPlantDto } from './dto/new-plant.dto';
import { PlantDto } from './dto/plant.dto';
import { NewPlantPipe } from './new-plant.pipe';
import { PlantsService } from './plants.service';
import { RequestContent } from './request-content.decorator';

/** `POST /plants`: specification, "Create plant". */
@Controller('plants')
export class PlantsController {
  constructor(private readonly plants: PlantsService) {}

  @Post()
  @HttpCode(HttpStatus.OK)
  @ApiOperation({ operationId: 'createPlant', summary: 'Creates a new plant in the store' })
  @ApiBody({ type: NewPlantDto })
  @ApiOkResponse({ description: 'Plant response', type: PlantDto })
  @ApiBadRequestResponse({ description: 'Error', type: ErrorDto })
  async create(@RequestContent(NewPlantPipe) newPlant: NewPlantDto): Promise<PlantDto> {
    const { name, tag } = await this.plants.create(newPlant);
    return { name, tag };
  }
}

import { Body, Controller, HttpCode, Module, Post, UseGuards } from '@nestjs/common';
import { NewPlantDto, serve, TokenGuard } from './nest';

/** Validates a plant with Nest's ValidationPipe. Stores nothing. */
@Controller('plants')
@UseGuards(TokenGuard)
class PlantsController {
  @Post()
  @HttpCode(200)
  create(@Body() { name, tag }: NewPlantDto): { name: string; tag?: string } {
    return { name, tag };
  }
}

@Module({ controllers: [PlantsController] })
class AppModule {}

void serve(AppModule);

import {
  Body,
  ConflictException,
  Controller,
  Delete,
  Get,
  HttpCode,
  Module,
  NotFoundException,
  Param,
  ParseIntPipe,
  Patch,
  Post,
  Put,
  ValidationPipe,
} from '@nestjs/common';
import { ApiProperty } from '@nestjs/swagger';
import { IsInt, IsString } from 'class-validator';

/** The body of a request to another route, with the rules of class-validator. */
class SeedDto {
  @IsInt()
  @ApiProperty()
  id!: number;

  @IsString()
  @ApiProperty()
  name!: string;
}

/**
 * A controller as the documentation of Nest shows it. It knows nothing of the service, and no file of the service
 * mentions its routes.
 */
@Controller('seeds')
class SeedsController {
  private readonly seeds = new Map<number, SeedDto>();

  @Post()
  create(@Body(new ValidationPipe({ whitelist: true })) seed: SeedDto): SeedDto {
    if (this.seeds.has(seed.id)) throw new ConflictException(`Seed ${seed.id} already exists`);
    this.seeds.set(seed.id, seed);
    return seed;
  }

  @Get(':id')
  find(@Param('id', ParseIntPipe) id: number): SeedDto {
    const seed = this.seeds.get(id);
    if (!seed) throw new NotFoundException(`No seed ${id}`);
    return seed;
  }

  @Put(':id')
  replace(@Param('id', ParseIntPipe) id: number, @Body() seed: unknown): unknown {
    return { id, seed };
  }

  @Patch(':id')
  change(@Param('id', ParseIntPipe) id: number, @Body() seed: unknown): unknown {
    return this.replace(id, seed);
  }

  @Post(':id/water')
  @HttpCode(202)
  water(@Body() body: unknown): { hasBody: boolean } {
    return { hasBody: body !== undefined };
  }

  @Delete(':id')
  @HttpCode(204)
  remove(@Param('id', ParseIntPipe) id: number): void {
    this.seeds.delete(id);
  }

  @Get(':id/broken')
  broken(): never {
    throw new Error('secret');
  }
}

/** A module beside `PlantsModule`, added by somebody who carries the service on. */
@Module({ controllers: [SeedsController] })
export class SeedsModule {}

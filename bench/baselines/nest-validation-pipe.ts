import 'reflect-metadata';
import {
  Body,
  type CanActivate,
  Controller,
  type ExecutionContext,
  HttpCode,
  Module,
  Post,
  UnauthorizedException,
  UseGuards,
  ValidationPipe,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { IsInt, IsOptional, IsString } from 'class-validator';

/** Nest as its documentation teaches: a guard, a DTO and the stock ValidationPipe. It stores nothing. */
class NewPlantDto {
  @IsInt()
  id!: number;

  @IsString()
  name!: string;

  @IsOptional()
  @IsString()
  tag?: string;
}

class TokenGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const { headers } = context
      .switchToHttp()
      .getRequest<{ headers: { authorization?: string } }>();
    if (headers.authorization !== `Bearer ${process.env.TOKEN}`) throw new UnauthorizedException();
    return true;
  }
}

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

async function main(): Promise<void> {
  const app = await NestFactory.create<NestFastifyApplication>(AppModule, new FastifyAdapter(), {
    logger: false,
  });
  app.useGlobalPipes(new ValidationPipe({ whitelist: true, transform: true }));
  await app.listen(Number(process.env.PORT), '127.0.0.1');
}

void main();

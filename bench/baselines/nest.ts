import 'reflect-metadata';
import {
  type CanActivate,
  type ExecutionContext,
  type Type,
  UnauthorizedException,
  ValidationPipe,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { IsInt, IsOptional, IsString } from 'class-validator';

/** Nest as in its documentation: a DTO, a guard and the ValidationPipe. */
export class NewPlantDto {
  @IsInt()
  id!: number;

  @IsString()
  name!: string;

  @IsOptional()
  @IsString()
  tag?: string;
}

export class TokenGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const { headers } = context
      .switchToHttp()
      .getRequest<{ headers: { authorization?: string } }>();
    if (headers.authorization !== `Bearer ${process.env.TOKEN}`) throw new UnauthorizedException();
    return true;
  }
}

export async function serve(module: Type): Promise<void> {
  const app = await NestFactory.create<NestFastifyApplication>(module, new FastifyAdapter(), {
    logger: false,
  });
  app.useGlobalPipes(new ValidationPipe({ whitelist: true, transform: true }));
  await app.listen(Number(process.env.PORT), '127.0.0.1');
}

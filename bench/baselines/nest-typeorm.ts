import 'reflect-metadata';
import {
  Body,
  type CanActivate,
  Controller,
  type ExecutionContext,
  HttpCode,
  Injectable,
  Module,
  Post,
  UnauthorizedException,
  UseGuards,
  ValidationPipe,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { InjectRepository, TypeOrmModule } from '@nestjs/typeorm';
import { IsInt, IsOptional, IsString } from 'class-validator';
import { Column, Entity, PrimaryColumn, type Repository } from 'typeorm';

/**
 * What most would write: Nest, the stock ValidationPipe, TypeORM. STORE: `sqlite` or `postgres`.
 * WRITE: `save`, with TypeORM's default settings, or `insert`, with a write-ahead log that is synced
 * at every commit.
 */
@Entity('plants')
class Plant {
  @PrimaryColumn({ type: 'bigint' })
  id!: number;

  @Column({ type: 'text' })
  name!: string;

  @Column({ type: 'text', nullable: true })
  tag?: string;
}

class NewPlantDto {
  @IsInt()
  id!: number;

  @IsString()
  name!: string;

  @IsOptional()
  @IsString()
  tag?: string;
}

@Injectable()
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
  constructor(@InjectRepository(Plant) private readonly plants: Repository<Plant>) {}

  @Post()
  @HttpCode(200)
  async create(@Body() plant: NewPlantDto): Promise<{ name: string; tag?: string }> {
    if (process.env.WRITE === 'save') await this.plants.save(plant);
    else await this.plants.insert(plant);
    return { name: plant.name, tag: plant.tag };
  }
}

const tuned = process.env.WRITE === 'insert';
const store =
  process.env.STORE === 'postgres'
    ? ({ type: 'postgres', url: process.env.DATABASE } as const)
    : ({
        type: 'better-sqlite3',
        database: process.env.DATABASE ?? '',

        prepareDatabase: (database: { pragma(text: string): void }) => {
          if (!tuned) return;
          database.pragma('journal_mode = WAL');
          database.pragma('synchronous = FULL');
        },
      } as const);

@Module({
  imports: [
    TypeOrmModule.forRoot({ ...store, entities: [Plant], synchronize: true }),
    TypeOrmModule.forFeature([Plant]),
  ],
  controllers: [PlantsController],
})
class AppModule {}

async function main(): Promise<void> {
  const app = await NestFactory.create<NestFastifyApplication>(AppModule, new FastifyAdapter(), {
    logger: false,
  });
  app.useGlobalPipes(new ValidationPipe({ whitelist: true, transform: true }));
  await app.listen(Number(process.env.PORT), '127.0.0.1');
}

void main();

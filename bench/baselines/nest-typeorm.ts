import { Body, Controller, HttpCode, Module, Post, UseGuards } from '@nestjs/common';
import { InjectRepository, TypeOrmModule } from '@nestjs/typeorm';
import { Column, Entity, PrimaryColumn, type Repository } from 'typeorm';
import { NewPlantDto, serve, TokenGuard } from './nest';

/**
 * The server that most Nest users would write: Nest, its ValidationPipe and TypeORM. STORE is `sqlite` or `postgres`.
 * WRITE is `save`, with TypeORM's default settings, or `insert`, with a write-ahead log that is synced at
 * every commit.
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

void serve(AppModule);

import {
  ConfigurableModuleBuilder,
  Controller,
  type Provider,
  type Type,
  UseGuards,
} from '@nestjs/common';
import { BearerGuard, TokenVerifier } from '../auth';
import { verifierOf } from './default-token-verifier';
import { ApiBearerAuth } from './swagger-decorators';
import { PostgresPlantsRepository, SqlitePlantsRepository } from './persistence';
import { PlantsController } from './plants.controller';
import {
  GUARDED_BY_HOST,
  type PlantsModuleMounting,
  type PlantsModuleOptions,
} from './plants.options';
import { PlantsRepository } from './plants.repository';
import { PLANTS_PATH } from './plants.route';

const defaults: PlantsModuleMounting = {
  path: PLANTS_PATH,
  guard: undefined,
  repository: undefined,
  imports: [],
};

/** The class with `forRoot` and `forRootAsync`, and the token under which the options are provided. */
export const { ConfigurableModuleClass, MODULE_OPTIONS_TOKEN } =
  new ConfigurableModuleBuilder<PlantsModuleOptions>()
    .setClassMethodName('forRoot')
    .setExtras(defaults, ({ imports = [], providers = [], ...definition }, mounting) => ({
      ...definition,
      imports: [...imports, ...mounting.imports],
      controllers: [controllerFor(mounting)],
      providers: [...providers, repositoryFor(mounting), ...verifierFor(mounting)],
    }))
    .build();

/** A controller of its own for each mounting, so that two of them do not share path and guard. */
function controllerFor({ path, guard }: PlantsModuleMounting): Type<PlantsController> {
  @Controller(path)
  class MountedPlantsController extends PlantsController {}
  // A document has operation ids from it, which must differ.
  Object.defineProperty(MountedPlantsController, 'name', { value: nameOf(path) });

  if (guard !== GUARDED_BY_HOST) UseGuards(guard ?? BearerGuard)(MountedPlantsController);
  if (guard === undefined) ApiBearerAuth('bearerAuth')(MountedPlantsController);
  return MountedPlantsController;
}

/** `greenhouse/plants` has a `GreenhousePlantsController`. */
function nameOf(path: string): string {
  const words = path.match(/[A-Za-z0-9]+/g) ?? [];
  return `${words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('')}Controller`;
}

function repositoryFor({ repository, guard }: PlantsModuleMounting): Provider {
  if (repository) return { provide: PlantsRepository, useExisting: repository };
  return {
    provide: PlantsRepository,
    // The verifier first: a host that its options keep from starting leaves no store behind, open.
    inject: [MODULE_OPTIONS_TOKEN, ...(guard ? [] : [TokenVerifier])],
    useFactory: openRepository,
  };
}

function openRepository({
  sqlite = 'data/plants.db',
  postgres,
}: PlantsModuleOptions): Promise<PlantsRepository> {
  return postgres === undefined
    ? SqlitePlantsRepository.open(sqlite)
    : PostgresPlantsRepository.open(postgres);
}

/** Who issues the bearer tokens; nobody when the host has a guard of its own. */
function verifierFor({ guard }: PlantsModuleMounting): Provider[] {
  if (guard) return [];
  return [
    {
      provide: TokenVerifier,
      inject: [MODULE_OPTIONS_TOKEN],
      useFactory: verifierOf,
    },
  ];
}

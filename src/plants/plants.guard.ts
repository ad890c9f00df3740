import { type CanActivate, type ExecutionContext, Inject, Injectable } from '@nestjs/common';

/** The injection token of the guard that the options name: bearer tokens, one of the host, or none. */
export const ROUTE_GUARD = Symbol('PlantsModule.guard');

/** In the place of a guard, where global guards of the host protect the route. */
export const OPEN: CanActivate = { canActivate: () => true };

/** Applies that guard. Nest makes the guards of a controller by their class, and this one is always the same. */
@Injectable()
export class PlantsGuard implements CanActivate {
  constructor(@Inject(ROUTE_GUARD) private readonly guard: CanActivate) {}

  canActivate(context: ExecutionContext): ReturnType<CanActivate['canActivate']> {
    return this.guard.canActivate(context);
  }
}

import { Reflector } from '@nestjs/core';

/** Exempts a route from the load limit and the rate limit, so that monitoring works under load. */
export const SkipAdmission = Reflector.createDecorator<undefined, true>({ transform: () => true });

import { Reflector } from '@nestjs/core';

/** `@SkipAdmission(true)` exempts the routes of a controller from the guards for load and rate. */
export const SkipAdmission = Reflector.createDecorator<boolean>();

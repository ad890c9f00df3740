import { createRequire } from 'node:module';
import type * as classValidator from 'class-validator';
import { deferDecorators } from './deferred-decorators';

const deferred = deferDecorators(
  () => createRequire(__filename)('class-validator') as typeof classValidator,
);

/** Decorators of `class-validator`, which is loaded when {@link explainFaults} is called first. */
export const { ValidateBy, ValidateIf } = deferred.decorators;

/** The message of `class-validator` for each rule that an object breaks. */
export function explainFaults(object: object): string[] {
  const faults = deferred.apply()?.validateSync(object) ?? [];
  return faults.flatMap(({ constraints = {} }) => Object.values(constraints));
}

import { Logger } from '@nestjs/common';
import { MIGRATIONS } from './migrations';

/** Logs the upgrade of a store from a version. A store that was created had the version 0. */
export function logUpgrade(version: number): void {
  if (version === 0 || version === MIGRATIONS.length) return;
  const sentence = `Upgraded the store from schema version ${version} to ${MIGRATIONS.length}.`;
  new Logger('PlantStore').log(sentence);
}

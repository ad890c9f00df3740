export { openRepository } from './open-repository';

export * from './errors';
export { ErrorFilter } from './error.filter';

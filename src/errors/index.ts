export * from './errors';
export * from './operator.error';

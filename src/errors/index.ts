export * from './error.channels';
export * from './errors';
export * from './operator.error';

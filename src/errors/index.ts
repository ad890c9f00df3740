export * from './error.channels';
export * from './errors';

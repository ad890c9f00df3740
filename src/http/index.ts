export * from './error.filter';
export * from './failure-log';
export * from './node-request';

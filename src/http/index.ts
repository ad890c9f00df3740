export { ErrorFilter, securityHeaders } from './error.filter';
export { FailureLog, LogThrottle } from './failure-log';
export { isJsonMediaType } from './media-type';
export { fieldValues, type HostRequest, nodeRequest, pathOf } from './node-request';

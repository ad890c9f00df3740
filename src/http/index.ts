export { ErrorFilter, securityHeaders } from './error.filter';
export { LogThrottle } from './log-throttle';
export { isJsonMediaType } from './media-type';
export { fieldValues, type HostRequest, nodeRequest, pathOf } from './node-request';

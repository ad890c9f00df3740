export { ErrorFilter, securityHeaders } from './error.filter';
export { FailureLog, LogThrottle } from './failure-log';
export {
  fieldValues,
  type HostRequest,
  isJsonMediaType,
  nodeRequest,
  pathOf,
} from './node-request';

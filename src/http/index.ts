export { ErrorFilter } from './error.filter';
export { FailureLog } from './failure-log';
export { LogThrottle } from './log-throttle';
export { isJsonMediaType } from './media-type';
export { fieldValues, type HostRequest, nodeRequest, pathOf } from './node-request';
export { securityHeaders } from './security-headers';
export {
  collectBytes,
  declareBytes,
  keepBodiesUnread,
  readBody,
  ReadsBody,
  wasRead,
} from './unread-body';

export { ErrorFilter } from './error.filter';
export { isJsonMediaType } from './media-type';
export { fieldValues, type HostRequest, nodeRequest, pathOf } from './node-request';

export { closeOnSignal, type ShutdownOptions } from './shutdown';
export { tuneV8 } from './v8';

export { closeOnSignal, type ShutdownOptions } from './shutdown';

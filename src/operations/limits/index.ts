export { shedLoad } from './load-shedding';
export type { RateLimitOptions } from './rate-limit';
export { RateLimitGuard } from './rate-limit.guard';

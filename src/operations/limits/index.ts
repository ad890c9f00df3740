export { shedLoad } from './load-shedding';
export { RateLimitGuard, type RateLimitOptions } from './rate-limit.guard';

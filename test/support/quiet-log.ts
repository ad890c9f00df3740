import { Logger } from '@nestjs/common';

// Hides Nest's log from the output of the tests (Jest's `setupFiles`). useLog() records it.
Logger.overrideLogger(false);

import { Logger } from '@nestjs/common';

// Keeps Nest's log out of the output of the tests (Jest's `setupFiles`). useLog() reads it.
Logger.overrideLogger(false);

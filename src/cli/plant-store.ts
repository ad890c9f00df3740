#!/usr/bin/env node
import '../server/process/versions';
import { checkHealth } from './health.command';

const args = process.argv.slice(2);
const [command = 'serve'] = args;
const line = args.join(' ');

// The default command is `serve`. A signal ends other commands.
if (command === 'serve' || command.startsWith('-')) void import('../server/process/signals.js');

// Containers check their health often, so this loads neither the service nor commander.
if (line === 'health') void checkHealth('live');
else if (line === 'health --ready') void checkHealth('ready');
else void import('./commands.js').then(({ runCommand }) => runCommand(args));

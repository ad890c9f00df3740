#!/usr/bin/env node
import '../server/settings/versions';
import { askHealth } from './health.command';

const args = process.argv.slice(2);
const line = args.join(' ');

// A container asks for its health again and again: that loads neither the service nor commander.
if (line === 'health') void askHealth('live');
else if (line === 'health --ready') void askHealth('ready');
else void import('./commands.js').then(({ runCommand }) => runCommand(args));

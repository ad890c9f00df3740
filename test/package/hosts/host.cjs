const { startHost } = require('./orchard.cjs');
const platforms = {
  express: () => new (require('@nestjs/platform-express').ExpressAdapter)(),
  fastify: (options) => new (require('@nestjs/platform-fastify').FastifyAdapter)(options),
};

void startHost({
  common: require('@nestjs/common'),
  core: require('@nestjs/core'),
  createAdapter: platforms[require('node:process').env.PLATFORM],
  plantStore: require('@plant-store/nestjs'),
});

const process = require('node:process');

/** Rejects requests without the token. */
module.exports = async function checkToken(app) {
  app.addHook('onRequest', async ({ headers }, reply) => {
    if (headers.authorization !== `Bearer ${process.env.TOKEN}`) return reply.code(401).send({});
  });
};

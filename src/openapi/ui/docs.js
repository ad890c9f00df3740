const response = await fetch('openapi.json');
const spec = await response.json();

// An id from the clock is most likely free, so the first try succeeds.
const { examples } = spec.paths['/plants'].post.requestBody.content['application/json'];
examples.tagged.value.id = Date.now();

SwaggerUIBundle({
  spec,
  dom_id: '#swagger-ui',
  docExpansion: 'full',
  defaultModelsExpandDepth: 0,
  tryItOutEnabled: true,
  persistAuthorization: true,
  deepLinking: true,
  // The badge of the validator would come from another origin.
  validatorUrl: null,
});

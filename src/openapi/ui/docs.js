const response = await fetch('openapi.json');
const spec = await response.json();

// An id that is free, as far as a clock can tell, so that the first try succeeds.
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
  // Its badge is a request to another origin.
  validatorUrl: null,
});

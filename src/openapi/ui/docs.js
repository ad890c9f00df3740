const response = await fetch('openapi.json');
const spec = parseExactly(await response.text());

// An id from the clock is most likely free, so the first try succeeds.
const { examples } = spec.paths['/plants'].post.requestBody.content['application/json'];
examples.tagged.value.id = Date.now();
// As texts, so that no digit of an id is lost: Swagger UI holds numbers as doubles.
for (const example of Object.values(examples)) {
  example.value = JSON.stringify(example.value, null, 2);
}

followColorScheme();
SwaggerUIBundle({
  spec,
  dom_id: '#swagger-ui',
  plugins: [showTextsAsTheyAre],
  docExpansion: 'full',
  // The schemas are shown with the body and the answers.
  defaultModelsExpandDepth: -1,
  tryItOutEnabled: true,
  deepLinking: true,
  // The badge of the validator would come from another origin.
  validatorUrl: null,
});

/** Reads JSON, with integers that a double cannot hold as they are written, in a browser that can. */
function parseExactly(text) {
  return JSON.parse(text, (_key, value, context) =>
    Number.isInteger(value) && !Number.isSafeInteger(value) && context?.source && JSON.rawJSON
      ? JSON.rawJSON(context.source)
      : value,
  );
}

/** Shows an example that is a text as it is. Swagger UI would parse and print it. */
function showTextsAsTheyAre({ fn: { getSampleSchema } }) {
  const sample = (schema, mediaType, config, example) =>
    typeof example === 'string' ? example : getSampleSchema(schema, mediaType, config, example);
  return { fn: { getSampleSchema: sample } };
}

/** Makes the page dark while the browser prefers that. */
function followColorScheme() {
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const follow = () => document.documentElement.classList.toggle('dark-mode', dark.matches);
  dark.addEventListener('change', follow);
  follow();
}

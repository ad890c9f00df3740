const KEPT = 'authorized';

const response = await fetch('openapi.json');
const spec = parseExactly(await response.text());

// An id from the clock is most likely free, so the first try succeeds.
const { examples } = spec.paths['/plants'].post.requestBody.content['application/json'];
examples.tagged.value.id = Date.now();
// As texts, so that no digit of an id is lost: Swagger UI keeps only what a double holds of a number.
for (const example of Object.values(examples)) {
  example.value = JSON.stringify(example.value, null, 2);
}

followColorScheme();
SwaggerUIBundle({
  spec,
  dom_id: '#swagger-ui',
  plugins: [showTextsAsTheyAre, foldAnswers, askBeforeKeepingToken],
  docExpansion: 'full',
  // The schemas are shown with the body and the answers.
  defaultModelsExpandDepth: -1,
  tryItOutEnabled: true,
  persistAuthorization: keptAuthorization() !== null,
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

/** Shows each declared answer as one line, which a click unfolds. */
function foldAnswers({ React: { createElement, Fragment, useState } }) {
  const foldable = (Response) =>
    function FoldableResponse(props) {
      const [isOpen, setOpen] = useState(false);
      const { code, response: declared, className } = props;
      const fold = createElement(
        'button',
        { type: 'button', 'aria-expanded': isOpen, onClick: () => setOpen(!isOpen) },
        declared.get('description'),
      );
      return createElement(
        Fragment,
        null,
        createElement(
          'tr',
          { className: 'response fold' },
          createElement('td', { className: 'response-col_status' }, code),
          createElement('td', { className: 'response-col_description' }, fold),
        ),
        isOpen && createElement(Response, { ...props, className: `${className} unfolded` }),
      );
    };
  return { wrapComponents: { response: foldable } };
}

/** Stores the token in the browser only while the box below it is checked. */
function askBeforeKeepingToken({ React: { createElement, Fragment, useState } }) {
  const withBox = (Auths, { getConfigs, authActions }) =>
    function AuthsWithBox(props) {
      const [isKept, setKept] = useState(getConfigs().persistAuthorization);
      const change = ({ target: { checked } }) => {
        getConfigs().persistAuthorization = checked;
        if (checked) authActions.persistAuthorizationIfNeeded();
        else localStorage.removeItem(KEPT);
        setKept(checked);
      };
      return createElement(
        Fragment,
        null,
        createElement(Auths, props),
        createElement(
          'label',
          { className: 'keep-token' },
          createElement('input', { type: 'checkbox', checked: isKept, onChange: change }),
          ' Keep the token in this browser until I log out',
        ),
      );
    };
  return { wrapComponents: { auths: withBox } };
}

/** What Swagger UI has stored, or null: a browser may forbid the page its storage. */
function keptAuthorization() {
  try {
    return localStorage.getItem(KEPT);
  } catch {
    return null;
  }
}

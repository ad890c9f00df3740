# The program and Node.js on a small Debian;
# docs/deploy/README.md says how to build and run it.
FROM node:26-slim AS build
ARG TRACING=false
WORKDIR /opt/plant-store
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY nest-cli.json tsconfig.json tsconfig.build.json ./
COPY tools/bundle.mjs tools/
COPY src src
RUN npm run build
# OpenTelemetry when it is asked for, in the versions that the tests have.
COPY test/package.json test/
WORKDIR /opt/opentelemetry
# The names are separate arguments, and the shell expands nothing in the program.
# hadolint ignore=SC2016,SC2046
RUN mkdir node_modules \
  && if [ "$TRACING" = true ]; then \
    npm install --no-save --ignore-scripts --no-audit --no-fund \
      $(node --print 'Object.entries( \
      require("/opt/plant-store/test/package.json").dependencies).flatMap( \
      ([name, version]) => name.startsWith("@opentelemetry/") ? [`${name}@${version}`] : []).join(" ")') \
    && find node_modules \( -name '*.map' -o -name '*.d.ts' -o -name '*.md' \) -type f -delete; \
  fi

# Without npm, which the program does not need. Node.js needs libatomic.
FROM debian:trixie-slim
# A version named here would be gone from the archive after the next security update.
# hadolint ignore=DL3008
RUN apt-get update \
  && apt-get install --yes --no-install-recommends libatomic1 \
  && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/* \
  && groupadd --gid 10001 plants \
  && useradd --uid 10001 --gid plants --no-create-home --home-dir /data --shell /usr/sbin/nologin plants \
  && install --directory --owner=plants --group=plants --mode=700 /data /opt/plant-store/.compile-cache \
  && ln -s /opt/plant-store/plant-store.js /usr/local/bin/plant-store
COPY --from=build /usr/local/bin/node /usr/local/bin/
COPY --from=build /opt/opentelemetry/node_modules /opt/plant-store/node_modules
COPY --from=build /opt/plant-store/dist/program /opt/plant-store
ENV NODE_ENV=production HOST=0.0.0.0 PORT=3000 DATABASE_URL=sqlite:/data/plants.db
ENV NODE_COMPILE_CACHE=/opt/plant-store/.compile-cache
USER 10001:10001
# Code that is compiled here need not be compiled at each start, where the file system is read-only.
RUN export AUTH_TOKENS=none DATABASE_URL=sqlite:/tmp/plants.db LOG_LEVEL=silent; plant-store serve & \
  until plant-store health --ready >/dev/null 2>&1; do sleep 0.1; done; \
  kill $! && wait $! && rm /tmp/plants.db*
WORKDIR /data
VOLUME /data
EXPOSE 3000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=5s --timeout=5s --start-period=30s --retries=3 \
  CMD ["plant-store", "health", "--ready"]
ENTRYPOINT ["plant-store"]

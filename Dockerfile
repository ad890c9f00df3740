# The program, its dependencies and Node.js on a small Debian:
#   docker build -t plant-store .
#   docker run -p 127.0.0.1:3000:3000 -e AUTH_TOKENS=… -v plants:/data --read-only plant-store
FROM node:26-slim AS build
WORKDIR /opt/plant-store
COPY package.json package-lock.json .npmrc ./
COPY test/package.json test/
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY nest-cli.json tsconfig.json tsconfig.build.json tsconfig.start.json ./
COPY src src
RUN node node_modules/@nestjs/cli/bin/nest.js build --path tsconfig.start.json \
  && find dist -name '*.map' -delete \
  && chmod +x dist/plant-store.js

# What the program needs to run, at the versions of the lock file. Its peer dependencies, which a
# host would bring, are required here; OpenTelemetry when it is asked for.
FROM node:26-slim AS dependencies
ARG TRACING=false
WORKDIR /opt/plant-store
COPY package.json package-lock.json .npmrc ./
RUN npm pkg delete devDependencies workspaces scripts peerDependenciesMeta \
  && if [ "$TRACING" != true ]; then \
    npm pkg delete 'peerDependencies.@opentelemetry/api' \
      'peerDependencies.@opentelemetry/resources' 'peerDependencies.@opentelemetry/sdk-node'; \
  fi \
  && npm ci --ignore-scripts --no-audit --no-fund \
  && find node_modules \( -name '*.map' -o -name '*.d.ts' -o -name '*.md' \) -type f -delete

# Without npm, which the program does not need. Node.js needs libatomic.
FROM debian:trixie-slim
RUN apt-get update \
  && apt-get install --yes --no-install-recommends libatomic1 \
  && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/* \
  && groupadd --gid 10001 plants \
  && useradd --uid 10001 --gid plants --no-create-home --home-dir /data --shell /usr/sbin/nologin plants \
  && install --directory --owner=plants --group=plants --mode=700 /data \
  && ln -s /opt/plant-store/dist/plant-store.js /usr/local/bin/plant-store
COPY --from=build /usr/local/bin/node /usr/local/bin/
COPY --from=dependencies /opt/plant-store /opt/plant-store
COPY --from=build /opt/plant-store/dist /opt/plant-store/dist
ENV NODE_ENV=production HOST=0.0.0.0 PORT=3000 DATABASE_URL=sqlite:/data/plants.db
USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 3000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=5s --timeout=5s --start-period=30s --retries=3 \
  CMD ["plant-store", "health", "--ready"]
ENTRYPOINT ["plant-store"]

# The service on Debian slim. docs/deploy/README.md describes how to build and run the image.
FROM node:26.10.0-trixie-slim AS build
WORKDIR /opt/plant-store
COPY package.json package-lock.json ./
# The optional packages are another Node.js and programs of development tools.
RUN npm ci --ignore-scripts --omit=optional --no-audit --no-fund
COPY nest-cli.json tsconfig.json tsconfig.build.json ./
COPY src src
# Also removes optional peers of Nest, such as Express.
RUN npm run build \
  && npm prune --omit=dev --omit=optional --ignore-scripts --no-audit --no-fund \
  && chmod +x dist/cli/plant-store.js

FROM node:26.10.0-trixie-slim
LABEL org.opencontainers.image.title="Plant Store" \
  org.opencontainers.image.description="Stores plant records over HTTP: exactly, durably, and fast." \
  org.opencontainers.image.version="1.0.0" \
  org.opencontainers.image.licenses="MIT" \
  org.opencontainers.image.base.name="docker.io/library/node:26.10.0-trixie-slim"
RUN groupadd --gid 10001 plants \
  && useradd --uid 10001 --gid plants --no-create-home --home-dir /data --shell /usr/sbin/nologin plants \
  && install --directory --owner=plants --group=plants --mode=700 /data \
  && ln -s /opt/plant-store/dist/cli/plant-store.js /usr/local/bin/plant-store
COPY --from=build /opt/plant-store/package.json /opt/plant-store/
COPY --from=build /opt/plant-store/node_modules /opt/plant-store/node_modules
COPY --from=build /opt/plant-store/dist /opt/plant-store/dist
ENV NODE_ENV=production HOST=0.0.0.0 PORT=3000 HEALTH_PORT=3080 DATABASE_URL=sqlite:/data/plants.db
USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 3000 3080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=5s --start-period=30s --start-interval=1s --retries=3 \
  CMD ["plant-store", "health", "--ready"]
ENTRYPOINT ["plant-store"]

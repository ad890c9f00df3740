# The program and Node.js on a small Debian;
# docs/deploy/README.md says how to build and run it.
FROM node:26-slim AS build
WORKDIR /opt/plant-store
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY nest-cli.json tsconfig.json tsconfig.build.json ./
COPY tools/bundle.mjs tools/
COPY src src
RUN npm run build

# Without npm, which the program does not need. Node.js needs libatomic.
FROM debian:trixie-slim
# A version named here would be gone from the archive after the next security update.
# hadolint ignore=DL3008
RUN apt-get update \
  && apt-get install --yes --no-install-recommends libatomic1 \
  && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/* \
  && groupadd --gid 10001 plants \
  && useradd --uid 10001 --gid plants --no-create-home --home-dir /data --shell /usr/sbin/nologin plants \
  && install --directory --owner=plants --group=plants --mode=700 /data \
  && ln -s /opt/plant-store/plant-store.js /usr/local/bin/plant-store
COPY --from=build /usr/local/bin/node /usr/local/bin/
COPY --from=build /opt/plant-store/dist/program /opt/plant-store
ENV NODE_ENV=production HOST=0.0.0.0 PORT=3000 DATABASE_URL=sqlite:/data/plants.db
USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 3000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=5s --timeout=5s --start-period=30s --retries=3 \
  CMD ["plant-store", "health", "--ready"]
ENTRYPOINT ["plant-store"]

#!/bin/sh
# /usr/local/bin/plant-store: runs a command with the user, settings and data of plant-store.service. The command
# can write only the files in /var/lib/plant-store.
exec systemd-run --quiet --pipe --wait --collect --working-directory=/var/lib/plant-store \
  --property=DynamicUser=yes --property=User=plant-store \
  --property=StateDirectory=plant-store --property=StateDirectoryMode=0700 --property=UMask=0077 \
  --property=Environment='NODE_ENV=production DATABASE_URL=sqlite:/var/lib/plant-store/plants.db' \
  --property=EnvironmentFile=/etc/plant-store/environment \
  /opt/plant-store/bin/node /opt/plant-store/dist/cli/plant-store.js "$@"

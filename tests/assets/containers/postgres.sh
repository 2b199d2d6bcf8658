set -e
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  printf %s "$POSTGRES_PASSWORD" > /tmp/password
  initdb --pgdata "$PGDATA" --username "$POSTGRES_USER" --pwfile /tmp/password --auth scram-sha-256 --encoding UTF8
  rm /tmp/password
  echo "host all all all scram-sha-256" >> "$PGDATA/pg_hba.conf"
  pg_ctl --pgdata "$PGDATA" --wait --options "-c listen_addresses='' -k /tmp" start
  PGPASSWORD="$POSTGRES_PASSWORD" createdb --host /tmp --username "$POSTGRES_USER" "$POSTGRES_DB" || true
  pg_ctl --pgdata "$PGDATA" --wait stop
fi
exec postgres -D "$PGDATA" -c listen_addresses='*' -k /tmp

# Stands for docker.io/library/postgres where no registry can be reached: the same variables, the same folder.
ARG BASE
FROM ${BASE}
RUN apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends postgresql
COPY postgres.sh /postgres.sh
ENV PGDATA=/var/lib/postgresql/data/pgdata
RUN ln -s /usr/lib/postgresql/*/bin/* /usr/local/bin/ && mkdir -p /var/lib/postgresql/data && chown postgres /var/lib/postgresql/data
USER postgres
CMD ["sh", "/postgres.sh"]

#!/bin/sh
# Runs one part of a cluster: entrypoint.sh secrets|zookeeper|redis|nimbus|supervisor|service
# Settings by environment: STORM_HOME, DATA (own volume), SECRETS (shared volume), REDIS_HOST, ZOOKEEPER_HOST,
# NIMBUS_HOST, SLOTS (ports of a supervisor), SERVICE_CONF (TOML).
set -eu

home=${STORM_HOME:-/opt/leeward/current}
data=${DATA:-/data}
secrets=${SECRETS:-/secrets}
redis_host=${REDIS_HOST:-redis}
zookeeper_host=${ZOOKEEPER_HOST:-zookeeper}
nimbus_host=${NIMBUS_HOST:-nimbus}
jvm='-server -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xss512k -Djava.net.preferIPv4Stack=true'

shipped() { python -c "from leeward.local import places; print(places.$1())"; }

make_secrets() {   # once; all others read them
  umask 077
  [ -f "$secrets/secrets.json" ] && return
  redis_password=$(python -c 'import secrets; print(secrets.token_urlsafe(24))')
  zookeeper_secret=$(python -c 'import secrets; print(secrets.token_urlsafe(24))')
  hashed=$(printf %s "$redis_password" | sha256sum | cut -d' ' -f1)
  cat > "$secrets/redis.conf" <<END
bind 0.0.0.0
port 6379
user default on #$hashed ~* &* +@all
dir $data
appendonly yes
save ""
maxmemory ${REDIS_MAXMEMORY:-1gb}
maxmemory-policy noeviction
END
  # last, as it says that all is there
  printf '{"redis_password": "%s", "zookeeper_secret": "%s"}\n' "$redis_password" "$zookeeper_secret" \
    > "$secrets/secrets.json.new"
  mv "$secrets/secrets.json.new" "$secrets/secrets.json"
}

storm_yaml() {     # shipped settings, and what this cluster adds
  mkdir -p "$data/conf" "$data/logs" "$data/storm"
  cp -r "$(shipped storm_conf)/log4j2" "$data/conf/"
  {
    cat "$(shipped storm_conf)/storm.yaml"
    cat <<END
storm.zookeeper.servers: [$zookeeper_host]
nimbus.seeds: [$nimbus_host]
storm.local.dir: $data/storm
storm.log4j2.conf.dir: $data/conf/log4j2
supervisor.slots.ports: [${SLOTS:-6700, 6701}]
storm.scheduler: leeward.plugin.PlanScheduler
leeward.redis.url: redis://$redis_host:6379/0
leeward.secrets.file: $secrets/secrets.json
END
  } > "$data/conf/storm.yaml"
}

storm() {          # daemon, heap in MB, main class
  storm_yaml
  export STORM_CONF_DIR="$data/conf"
  classpath="$(shipped jars)/leeward-plugin.jar:$home/*:$home/lib/*:$home/extlib/*:$data/conf"
  # shellcheck disable=SC2086
  exec java $jvm "-Xmx$2m" "-Ddaemon.name=$1" "-Dstorm.options=storm.local.hostname=$(hostname)" \
    "-Dstorm.home=$home" "-Dstorm.log.dir=$data/logs" -Dstorm.conf.file= "-Dlogfile.name=$1.log" \
    "-Dlog4j.configurationFile=$data/conf/log4j2/cluster.xml" -cp "$classpath" "$3"
}

case ${1:-} in
  secrets) make_secrets ;;
  redis) exec redis-server "$secrets/redis.conf" ;;
  zookeeper)
    mkdir -p "$data/zookeeper"
    printf '%s\n' tickTime=2000 "dataDir=$data/zookeeper" clientPort=2181 maxClientCnxns=0 admin.enableServer=false \
      autopurge.purgeInterval=1 > "$data/zoo.cfg"
    # shellcheck disable=SC2086
    exec java $jvm -Xmx256m -cp "$home/lib/*" \
      org.apache.storm.shade.org.apache.zookeeper.server.quorum.QuorumPeerMain "$data/zoo.cfg"
    ;;
  nimbus) storm nimbus 512 org.apache.storm.daemon.nimbus.Nimbus ;;
  supervisor) storm supervisor 256 org.apache.storm.daemon.supervisor.Supervisor ;;
  service)
    export LEEWARD_SECRETS="$secrets/secrets.json"
    if [ -n "${SERVICE_CONF:-}" ]; then set -- --config "$SERVICE_CONF"; else set --; fi
    exec leeward serve --nimbus "$nimbus_host:6627" "$@"
    ;;
  *) echo "usage: $0 secrets|zookeeper|redis|nimbus|supervisor|service" >&2; exit 2 ;;
esac

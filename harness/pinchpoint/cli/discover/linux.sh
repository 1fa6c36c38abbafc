# What a Linux host is, for `pinchpoint init --discover`: a word, a tab and a value on each line. It only reads.
export LC_ALL=C PATH="$PATH:/usr/sbin:/sbin"
say() { printf '%s\t%s\n' "$1" "$2"; }
get() { curl -sf -m 2 --noproxy '*' "$@" 2>/dev/null; }

for name in sys_vendor product_name chassis_asset_tag; do
  [ -r "/sys/class/dmi/id/$name" ] && say "$name" "$(cat "/sys/class/dmi/id/$name")"
done
lsblk -P -b -o KNAME,SIZE,MODEL,TYPE,MOUNTPOINT,PKNAME 2>/dev/null | while IFS= read -r line; do say block "$line"; done

# The instance metadata service of the cloud, where the firmware says that this is its machine.
metadata=http://169.254.169.254
case "$(cat /sys/class/dmi/id/sys_vendor 2>/dev/null)" in
  Microsoft*)
    say azure "$(get -H Metadata:true "$metadata/metadata/instance/compute?api-version=2021-02-01" | tr -d '\n')"
    for lun in /dev/disk/azure/scsi1/lun* /dev/disk/azure/data/by-lun/*; do
      [ -e "$lun" ] && say lun "${lun##*[!0-9]} $(basename "$(readlink -f "$lun")")"
    done ;;
  Amazon*)
    token=$(get -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 60' "$metadata/latest/api/token")
    say aws_type "$(get -H "X-aws-ec2-metadata-token: $token" "$metadata/latest/meta-data/instance-type")"
    say aws_region "$(get -H "X-aws-ec2-metadata-token: $token" "$metadata/latest/meta-data/placement/region")" ;;
esac

# Servers by their programs. Of a command line only PostgreSQL's -D is said: others may hold passwords.
ps -eo pid=,ppid=,comm= | while read -r pid parent program; do
  case $program in
    postgres | postmaster)
      [ "$(cat "/proc/$parent/comm" 2>/dev/null)" = "$program" ] && continue
      data=$(tr '\0' '\n' <"/proc/$pid/cmdline" 2>/dev/null | sed -n '/^-D$/{n;p;q;}')
      say server "postgres"
      [ -n "$data" ] || data=$(readlink "/proc/$pid/cwd" 2>/dev/null)
      [ -n "$data" ] || continue
      say postgres.data "$data"
      wal=$(readlink -f "$data/pg_wal" 2>/dev/null) && [ -d "$wal" ] && say postgres.log "$wal" ;;
    mariadbd | mysqld | valkey-server | redis-server | mongod)
      say server "$program"
      data=$(readlink "/proc/$pid/cwd" 2>/dev/null) && [ "$data" != / ] && say "$program.data" "$data" ;;
    sqlservr)
      say server sqlservr
      [ -d /var/opt/mssql ] && say sqlservr.data /var/opt/mssql ;;
    java)
      tr '\0' '\n' <"/proc/$pid/cmdline" 2>/dev/null | grep -q CassandraDaemon || continue
      say server cassandra
      [ -d /var/lib/cassandra/data ] && say cassandra.data /var/lib/cassandra/data
      [ -d /var/lib/cassandra/commitlog ] && say cassandra.log /var/lib/cassandra/commitlog ;;
    nginx | apache2 | httpd) say server "$program" ;;
  esac
done
exit 0

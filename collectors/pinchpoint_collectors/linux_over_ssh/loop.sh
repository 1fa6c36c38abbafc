# Pinchpoint watches this machine: /proc and /sys as text, until the connection that asked for it ends. Writes no
# file. Before this text stand: interval (ns), silence (s without a question after which it ends), files (to be
# sent over and over), processes (yes: all of them as well), places (paths whose disk is wanted).
LC_ALL=C
PATH=$PATH:/bin:/usr/bin:/sbin:/usr/sbin
export LC_ALL PATH

# What this system can do: fractions in sleep, nanoseconds in date, 64 bits in the shell.
fractions=no
sleep 0.01 2>/dev/null && [ "$((8589934592 / 2))" = 4294967296 ] && fractions=yes
case $(date +%s%N 2>/dev/null) in
  *[!0-9]*) nanoseconds=no ;;
  ???????????????????*) nanoseconds=yes ;;
  *) nanoseconds=no ;;
esac

# The clock that readings are stamped with, in nanoseconds, as `now`: that of the day, or the time since the
# start in steps of 10 ms.
look() {
  if [ $nanoseconds = yes ]; then
    now=$(date +%s%N)
  else
    read -r now idle </proc/uptime
    now=${now%.*}${now#*.}0000000
  fi
}

place() {
  what=none
  [ -e "$1" ] && what=path
  [ -b "$1" ] && what=device
  printf '%s\t%s\t%s\t%s\n' place "$what" "$(readlink -f "$1" 2>/dev/null)" "$1"
}

# What the metadata service of its cloud says of the machine: asked where the firmware names the cloud, never for long.
metadata() {
  if command -v curl >/dev/null; then curl -sf -m 1 --noproxy '*' -H "$2" "$1"
  else wget -q -T 1 -t 1 -O - --header "$2" "$1"; fi 2>/dev/null | tr -d '\r\n'
}
cloud() {
  firmware=${PINCHPOINT_FIRMWARE:-/sys/class/dmi/id}
  service=${PINCHPOINT_METADATA:-http://169.254.169.254}
  case $(cat "$firmware/chassis_asset_tag" "$firmware/sys_vendor" 2>/dev/null) in
    7783-7084-3265-9085-8269-3286-77*)
      echo "cloud azure $(metadata "$service/metadata/instance/compute?api-version=2021-02-01" Metadata:true)" ;;
    *"Amazon EC2"*)
      token=$(curl -sf -m 1 --noproxy '*' -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 60' "$service/latest/api/token" 2>/dev/null)
      echo "cloud aws $(metadata "$service/latest/dynamic/instance-identity/document" "X-aws-ec2-metadata-token: $token")" ;;
    *Google*)
      echo "cloud google $(metadata "$service/computeMetadata/v1/instance/?recursive=true" Metadata-Flavor:Google)" ;;
  esac
}

# Once: what must be known of the machine. Lines `path:content`, and those that begin with a word.
hello() {
  echo "#pinchpoint"
  echo "fractions $fractions"
  echo "nanoseconds $nanoseconds"
  echo "page_bytes $(getconf PAGESIZE 2>/dev/null || echo 4096)"
  echo "ticks_per_s $(getconf CLK_TCK 2>/dev/null || echo 100)"
  for file in $files; do
    why=$(cat "$file" 2>&1 >/dev/null) || echo "missing $file ${why##*: }"
  done
  cloud
  echo "/proc/sys/kernel/arch:$(uname -m)"
  sed -n '1,/^$/p' /proc/cpuinfo | sed 's|^|/proc/cpuinfo:|'
  grep -s '' /proc/meminfo /proc/1/status /proc/2/status /proc/self/mountinfo /proc/sys/kernel/hostname \
    /proc/sys/kernel/osrelease /proc/sys/kernel/random/boot_id /etc/os-release /usr/lib/os-release \
    /sys/devices/system/cpu/online /sys/devices/system/clocksource/clocksource0/current_clocksource \
    /sys/class/dmi/id/sys_vendor /sys/class/dmi/id/product_name \
    /sys/block/*/size /sys/block/*/hidden /sys/block/*/device/model /sys/block/*/queue/rotational \
    /sys/block/*/queue/scheduler /sys/block/*/queue/write_cache /sys/block/*/queue/iostats /sys/block/*/stat \
    /sys/block/*/loop/backing_file \
    /sys/class/block/*/dev /sys/class/block/*/partition \
    /sys/class/net/*/operstate /sys/class/net/*/speed 2>/dev/null
  ls -l /sys/class/block/ | sed -n 's|.* \([^ ]*\) -> \(.*\)|link /sys/class/block/\1 \2|p'
  for slave in /sys/block/*/slaves/*; do
    [ -e "$slave" ] && echo "name $slave"
  done
  { # what mounts and loop devices lie on, and what the farm names
    sed -n 's|.* - [^ ]* \(/dev/[^ ]*\) .*|\1|p' /proc/self/mountinfo
    cat /sys/block/loop*/loop/backing_file 2>/dev/null
    printf '%s' "$places"
  } | sort -u | while IFS= read -r path; do place "$path"; done
  echo "#e"
}

# Over and over: all files in one go, between two of them the uptime, which tells them apart and when each was
# read.
readings() {
  read -r me others </proc/self/stat
  list=
  for file in $files /proc/$me/stat /proc/$$/stat /proc/$PPID/stat; do list="$list /proc/uptime $file"; done
  while :; do
    look
    echo "#f $now" || exit
    cat $list 2>/dev/null
    if [ $processes = yes ]; then
      echo "#p"
      cat /proc/[0-9]*/stat 2>/dev/null
    fi
    echo "#e" || exit
    if [ $fractions = yes ]; then
      rest=$((interval - now % interval))
      [ $rest -lt $((interval / 10)) ] && rest=$((rest + interval))
      part=$((1000000000 + rest % 1000000000))
      sleep $((rest / 1000000000)).${part#1}
    else
      sleep $(((interval + 999999999) / 1000000000))
    fi
  done
}

# Ends all when nobody has asked for so long: the link was cut, and nothing else tells this side. All is one
# process group, and nothing else is in it: also what hangs in a pipe that nobody empties.
#
# A signal that comes while `sleep` begins is taken by the shell's copy that becomes it: $! names that one already,
# and only KILL cannot be lost.
watchdog() {
  trap 'kill -9 $! 2>/dev/null; exit' TERM
  trap 'kill -9 $! 2>/dev/null' USR1
  while :; do
    sleep $silence &
    wait $! && break
  done
  kill 0
}

hello
trap '' USR1
readings </dev/null &
watchdog </dev/null >/dev/null 2>&1 &
dog=$!
while read -r what number patterns; do
  case $what in
    t)
      look
      echo "#t $number $now $(date +%s)" >&2
      kill -USR1 $dog
      ;;
    f) # the files that the rest of the line names; with a second one, grep says whose line it is
      grep -s '' /dev/null $patterns | sed "s|^|#h $number |" >&2
      echo "#H $number" >&2
      ;;
  esac
done
kill 0

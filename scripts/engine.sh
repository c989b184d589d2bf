#!/usr/bin/env bash
# Fetches llama.cpp's CPU libraries and lays them out for the loader:
#   engine.sh        into the user's cache
#   engine.sh embed  and packs them for embedding into the binary
#   engine.sh peer   and a folder with one CPU variant only: the one with the
#                    peer's instruction set, for equal benchmarks
#   engine.sh vulkan the Vulkan build, into a folder of its own
# Prints the folder (or the archive).
. "$(dirname "$0")/fetch.sh"

embed_dir=$root/devices/engine/lib

# manifest DIR lists what a complete folder holds: "sha256 size name" a line
# for files, "link target name" for links, sorted by name.
manifest() {
	local f
	(cd "$1" && for f in *; do
		[[ $f == MANIFEST ]] && continue
		if [[ -L $f ]]; then
			printf 'link %s %s\n' "$(readlink "$f")" "$f"
		else
			printf '%s %s %s\n' "$(digest "$f")" "$(stat -c %s "$f")" "$f"
		fi
	done)
}

# complete DIR tells whether a folder holds what its manifest says, by size.
complete() {
	local dir=$1 sum size name
	[[ -s $dir/MANIFEST ]] || return 1
	while read -r sum size name; do
		if [[ $sum == link ]]; then
			[[ $(readlink "$dir/$name") == "$size" ]] || return 1
		else
			[[ $(stat -c %s "$dir/$name" 2>/dev/null) == "$size" ]] || return 1
		fi
	done <"$dir/MANIFEST"
}

# lay ARCHIVE FOLDER-IN-IT DEST SUFFIX unpacks libraries, names them as the
# loader wants and moves the folder into place whole.
lay() {
	local archive=$1 inner=$2 dest=$3 suffix=$4 dir lib
	dir=$(scratch "lay-$(basename "$dest")")
	mkdir "$dir/out"
	tar -xzf "$downloads/$archive" -C "$dir"
	cp "$dir/package/LICENSE" "$dir/out/LICENSE"
	mv "$dir/package/bins/$inner"/*.so "$dir/out/"
	rm -f "$dir/out/libllama-common"*.so # of other programs; ours needs the C API only
	for lib in llama ggml; do
		[[ -f $dir/out/lib$lib$suffix.so ]] || die "$archive: lib$lib$suffix.so is not in it; the pins in scripts/pins.sh don't fit together"
		ln -s "lib$lib$suffix.so" "$dir/out/lib$lib.so"
	done
	chmod 644 "$dir/out"/*
	manifest "$dir/out" >"$dir/MANIFEST"
	mv "$dir/MANIFEST" "$dir/out/MANIFEST"
	replace "$dir/out" "$dest"
	rm -rf "$dir"
}

replace() {
	mkdir -p "$(dirname "$2")"
	if [[ -e $2 ]]; then
		mv "$2" "$cache/tmp/old-$(basename "$2").$$"
	fi
	mv "$1" "$2"
	rm -rf "$cache/tmp/old-$(basename "$2").$$"
}

cpu() {
	complete "$cpu_lib" && return
	npm_fetch "$NPM_CPU" "$NPM_VERSION" "$NPM_CPU_SHA256" "llama-cpu-$NPM_VERSION.tgz" "11 MB"
	lay "llama-cpu-$NPM_VERSION.tgz" linux-x64 "$cpu_lib" ".$LIB_VERSION"
}

# embed packs the folder; the archive depends on its content alone.
embed() {
	cpu
	if cmp -s "$cpu_lib/MANIFEST" "$embed_dir/MANIFEST" && [[ -s $embed_dir/cpu.tar.gz ]]; then
		return
	fi
	tar -C "$cpu_lib" --exclude=./MANIFEST --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 -cf - . |
		gzip -9n >"$embed_dir/cpu.tar.gz.new"
	mv "$embed_dir/cpu.tar.gz.new" "$embed_dir/cpu.tar.gz"
	cp "$cpu_lib/MANIFEST" "$embed_dir/MANIFEST"
}

peer() {
	cpu
	complete "$cpu_lib-peer" && grep -q "libggml-cpu-$(peer_variant).so" "$cpu_lib-peer/MANIFEST" && return
	local dir f
	dir=$(scratch lay-peer)
	mkdir "$dir/out"
	cp -a "$cpu_lib"/. "$dir/out/"
	for f in "$dir"/out/libggml-cpu-*.so; do
		[[ $f == */libggml-cpu-$(peer_variant).so ]] || rm "$f"
	done
	manifest "$dir/out" >"$dir/MANIFEST"
	mv "$dir/MANIFEST" "$dir/out/MANIFEST"
	replace "$dir/out" "$cpu_lib-peer"
	rm -rf "$dir"
}

vulkan() {
	complete "$vulkan_lib" && return
	npm_fetch "$NPM_VULKAN" "$NPM_VERSION" "$NPM_VULKAN_SHA256" "llama-vulkan-$NPM_VERSION.tgz" "24 MB"
	lay "llama-vulkan-$NPM_VERSION.tgz" linux-x64-vulkan "$vulkan_lib" ".vulkan.$LIB_VERSION"
}

case ${1:-} in
"")
	locked engine cpu
	printf '%s\n' "$cpu_lib"
	;;
embed)
	locked engine embed
	printf '%s\n' "$embed_dir/cpu.tar.gz"
	;;
peer)
	locked engine peer
	printf '%s\n' "$cpu_lib-peer"
	;;
vulkan)
	locked engine vulkan
	printf '%s\n' "$vulkan_lib"
	;;
*) die "usage: engine.sh [embed|peer|vulkan]" ;;
esac

#!/usr/bin/env bash
# The engines' suite on a Vulkan device: a GPU's, or else the software driver's,
# which ggml takes only when it is asked for by number.
. "$(dirname "$0")/fetch.sh"
cd "$root"

lib=$("$root/scripts/engine.sh" vulkan)
if ! bin/ieg doctor --json | grep -q '"device Vulkan0"'; then
	export GGML_VK_VISIBLE_DEVICES=0
	bin/ieg doctor --json | grep -q '"device Vulkan0"' ||
		die "can't run: no Vulkan device, not even the software one; install a driver (Debian: libvulkan1 mesa-vulkan-drivers)"
	say "no GPU: the software driver computes"
fi
IEG_LIB=$lib IEG_DEVICE=Vulkan0 CGO_ENABLED=0 go test ./devices/engine/llama -count=1 -timeout 25m -v -run 'Conformance$|ConformanceInChild$|EmbedPooling|Across|AllWays' "$@"

#!/usr/bin/env bash
# Fetches the Vulkan build of the engine and, when root, Debian's loader and
# software driver, so that a machine without a GPU has a second backend.
. "$(dirname "$0")/fetch.sh"

if ! ldconfig -p | grep -q 'libvulkan\.so\.1' || ! compgen -G '/usr/share/vulkan/icd.d/*.json' >/dev/null; then
	if [[ $(id -u) == 0 ]]; then
		apt_install libvulkan1 mesa-vulkan-drivers
	else
		say "no Vulkan driver found; the software driver comes with: apt-get install libvulkan1 mesa-vulkan-drivers"
	fi
fi
"$root/scripts/engine.sh" vulkan
say "use it with: ieg engine add vulkan"

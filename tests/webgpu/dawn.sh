#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs the tests of the WebGPU backend with Dawn on Mesa's lavapipe.
#
#     tests/webgpu/dawn.sh BUILD_FOLDER [TEST [ARGUMENT ...]]
#
# TEST is a name such as webgpu_ops; without one, all run. Dawn and its C library come from a root of Debian unstable,
# 400 MB, which debootstrap makes as root in build/tools/dawn if it is missing. DAWN_ROOT names another one. Programs of
# this system run in it, because its loader starts them.
set -eu
build=$1
shift
here=$(cd "$(dirname "$0")/../.." && pwd)
root=${DAWN_ROOT:-$here/build/tools/dawn}
arch=$(uname -m)-linux-gnu
libraries=$root/usr/lib/$arch

if [ ! -e "$libraries/libwebgpu_dawn.so.0" ]; then
    debootstrap --variant=minbase --include=libwebgpu-dawn0,mesa-vulkan-drivers,libvulkan1 unstable "$root"
fi

run() {
    test=$1
    shift
    echo "== $test $*"
    env XDG_RUNTIME_DIR="${XDG_RUNTIME_DIR:-/tmp}" VK_ICD_FILENAMES="$root/usr/share/vulkan/icd.d/lvp_icd.json" \
        FRIT_TEST_WEBGPU="$libraries/libwebgpu_dawn.so.0" "$(ls "$libraries"/ld-linux-*.so.*)" \
        --library-path "$libraries:/usr/lib/$arch" "$build/tests/test_backend_$test" "$@"
}

if [ $# -gt 0 ]; then
    run "$@"
else
    run webgpu_gpu
    run webgpu_ops all
    run webgpu_experts
    run webgpu_recurrent all
    run webgpu_adapt
    run webgpu_picks
    run webgpu_pick_run
    run webgpu_model ""
fi

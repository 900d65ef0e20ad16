#!/bin/sh -eu
# SPDX-License-Identifier: Apache-2.0
# Builds a target a family into $OUT, with options and first inputs, by $CC, $CFLAGS, $CXX, $CXXFLAGS and
# $LIB_FUZZING_ENGINE. ClusterFuzzLite runs the same script.
cd "$SRC/crosslane"
python3 -c 'import sys; sys.exit("Python 3.11 or newer is needed: take a newer base image" if sys.version_info < (3, 11) else 0)'
python3 -m pip install --quiet .
python3 -m crosslane targets build --out "$OUT"

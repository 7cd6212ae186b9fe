#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# carry.sh FOLDER PROGRAM...: the programs, stripped, and the shared libraries they need beyond the C library, in one folder that
# can be carried to another machine.
set -euo pipefail
folder=$1; shift
mkdir -p "$folder"
for program in "$@"; do
  strip -o "$folder/$(basename "$program")" "$program"
  ldd "$program" | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | while read -r library; do
    case $(basename "$library") in
      libc.so.* | libm.so.* | ld-linux*) ;;
      *) cp -L "$library" "$folder/" ;;
    esac
  done
done

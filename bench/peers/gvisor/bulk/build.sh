#!/bin/sh
# build.sh DIRECTORY: as ../build.sh, of this folder's program.
exec sh "$(dirname "$0")/../build.sh" "$1" bulk

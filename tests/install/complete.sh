# SPDX-License-Identifier: MIT
# complete.sh FILE WORD...: what the bash completion in FILE offers for the last word.
source "$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_frit
echo "${COMPREPLY[*]}"

# SPDX-License-Identifier: MIT
# complete.sh FILE WORD...: prints the completions that the file for bash offers for the last word.
source "$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_frit
echo "${COMPREPLY[*]}"

#!/bin/sh
# restore.sh gives back the files of one session from a session-keeper store,
# with nothing but sh, jq, zstd and coreutils, and checks every byte.
#
#   restore.sh STORE SESSION-ID DEST [MANIFEST]
#
#   STORE       the store's folder (the one with the file "format" in it)
#   SESSION-ID  a folder name below STORE/sessions
#   DEST        a folder to write to; it must be empty or not exist
#   MANIFEST    a generation: its number, the beginning of the hash in its
#               file's name, or that name; without it, the newest one that is
#               whole
#
# Files come out as DEST/FAMILY/PATH in folders of 0700, with the time that they
# had and the owner's part of their mode; others get no access. FORMAT.md says what the families are and where the client
# looks for them; the transcript is DEST/transcript/SESSION-ID.jsonl.
#
# It speaks format version 1. Exit codes: 0 all files are back; 1 failed;
# 2 wrong usage; 3 no such store, session or generation; 4 damage was found
# (what is not damaged is back, unless the manifest is).

set -eu
LC_ALL=C
export LC_ALL
umask 077
tab=$(printf '\t')

say() { printf '%s\n' "restore.sh: $*" >&2; }
die() { # CODE MESSAGE...
	code=$1
	shift
	say "error: $*"
	exit "$code"
}

[ $# -eq 3 ] || [ $# -eq 4 ] || die 2 "usage: restore.sh STORE SESSION-ID DEST [MANIFEST]"
store=$1 session=$2 dest=$3 want=${4:-}
case $store in -*) store=./$store ;; esac
case $dest in -*) dest=./$dest ;; esac

for tool in jq zstd touch head tail mktemp sort; do
	command -v "$tool" >/dev/null 2>&1 || die 1 "$tool is not installed"
done
if command -v sha256sum >/dev/null 2>&1; then
	sha256() { sha256sum <"$1" | cut -c1-64; }
elif command -v shasum >/dev/null 2>&1; then
	sha256() { shasum -a 256 <"$1" | cut -c1-64; } # macOS
else
	die 1 "sha256sum is not installed"
fi

# is_hex TEXT LENGTH: lower-case hex digits, that many.
is_hex() {
	case $1 in *[!0-9a-f]*) return 1 ;; esac
	[ ${#1} -eq "$2" ]
}

[ -f "$store/format" ] || die 3 "$store is no session-keeper store: it has no file \"format\""
jq -e '.format == "session-keeper archive"' "$store/format" >/dev/null 2>&1 ||
	die 3 "$store/format is not that of a session-keeper store"
jq -e '.version == 1 and .hash == "sha256" and (.read_features | length) == 0' "$store/format" >/dev/null 2>&1 ||
	die 1 "$store needs a newer restore.sh (it has another version, hash or feature)"

case $session in
????????-????-????-????-????????????) ;;
*) die 2 "$session is no session id" ;;
esac
case $session in *[!0-9a-f-]*) die 2 "$session is no session id" ;; esac
folder=$store/sessions/$session
[ -d "$folder" ] || die 3 "session $session is not in $store"

if [ -e "$dest" ]; then
	[ -d "$dest" ] || die 1 "$dest is no folder"
	[ -z "$(ls -A "$dest")" ] || die 1 "$dest is not empty; choose a new folder"
fi

work=$(mktemp -d "${TMPDIR:-/tmp}/restore.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# manifests: the names of all manifests, the greatest number first. The number
# has six digits or more, so it is compared as a number.
for file in "$folder"/*.json; do
	name=${file##*/}
	number=${name%%-*}
	hash=${name#*-}
	hash=${hash%.json}
	case $number in '' | *[!0-9]*) continue ;; esac
	is_hex "$hash" 64 || continue
	printf '%s %s %s\n' "$number" "$hash" "$name"
done | sort -k1,1nr -k2,2r >"$work/names"
[ -s "$work/names" ] || die 3 "session $session has no manifest"

# chain NAME HASH: check a manifest and its bases, and write them to
# $work/chain, the newest first.
chain() {
	: >"$work/chain"
	name=$1 hash=$2 depth=''
	while :; do
		[ -f "$folder/$name" ] || { say "manifest $name is missing"; return 1; }
		[ "$(sha256 "$folder/$name")" = "$hash" ] || { say "manifest $name is damaged: its bytes are not those it is named after"; return 1; }
		jq -e --arg session "$session" '.format == "session-keeper manifest" and .version == 1 and .session_id == $session' \
			"$folder/$name" >/dev/null 2>&1 || { say "manifest $name is not of this session, or needs a newer restore.sh"; return 1; }
		here=$(jq -r '.base.depth // 0 | tostring' "$folder/$name")
		case $here in '' | *[!0-9]*) here=99 ;; esac
		if [ "$here" -gt 16 ] || { [ -n "$depth" ] && [ "$here" -ne $((depth - 1)) ]; }; then
			say "manifest $name has the depth $here, which cannot be"
			return 1
		fi
		depth=$here
		cat "$folder/$name" >>"$work/chain"
		[ "$depth" -gt 0 ] || return 0
		hash=$(jq -r '.base.manifest' "$folder/$name")
		is_hex "$hash" 64 || { say "manifest $name names no proper base"; return 1; }
		name=$(while read -r _ h n; do
			if [ "$h" = "$hash" ]; then
				printf '%s\n' "$n"
				break
			fi
		done <"$work/names")
		[ -n "$name" ] || { say "manifest $hash, a base, is missing"; return 1; }
	done
}

chosen='' damage=0
if [ -n "$want" ]; then
	matches=0
	while read -r number pickhash pick; do
		plain=${number#"${number%%[!0]*}"}
		case $want in
		"$number" | "$plain" | "$pick" | */"$pick") ;;
		*)
			[ ${#want} -ge 4 ] || continue
			case $pickhash in "$want"*) ;; *) continue ;; esac
			;;
		esac
		matches=$((matches + 1))
		chosen=$pick chosenhash=$pickhash
	done <"$work/names"
	[ $matches -gt 0 ] || die 3 "session $session has no generation $want"
	[ $matches -eq 1 ] || die 3 "session $session has $matches generations $want; name one by the hash in its file's name"
	chain "$chosen" "$chosenhash" || die 4 "generation $want cannot be read"
else
	while read -r _ pickhash pick; do
		if chain "$pick" "$pickhash"; then
			chosen=$pick
			break
		fi
		say "trying an older generation"
		damage=1
	done <"$work/names"
	[ -n "$chosen" ] || die 4 "no generation of session $session can be read"
fi

# Join the manifest with its bases, the oldest first: an entry replaces the one
# of the same family and path, after the first "keep" pieces of that one. Each
# file becomes one line F and a line P for each piece. Whatever is not as it
# must be stops everything before a file is written.
jq -rs '
	def hex: type == "string" and length == 64 and (explode | all((. >= 48 and . <= 57) or (. >= 97 and . <= 102)));
	def mode: type == "string" and length == 4 and (explode | all(. >= 48 and . <= 55));
	def count: type == "number" and . >= 0 and . == floor;
	def safe:
		type == "string" and length > 0 and
		(explode | all(. >= 32 and . != 127 and . != 92)) and
		(split("/") | all(. != "" and . != "." and . != "..")) and
		((explode | length > 1 and .[1] == 58 and ((.[0] >= 65 and .[0] <= 90) or (.[0] >= 97 and .[0] <= 122))) | not);
	def family: type == "string" and length > 0 and (explode | all(. == 45 or (. >= 97 and . <= 122)));
	reverse
	| reduce .[] as $m ({}; . as $base
		| reduce $m.files[] as $f (.; ($f.family + "/" + $f.path) as $k
			| ($f.keep // 0) as $keep
			| if $keep > ($base[$k].pieces // [] | length) then error("\($k) keeps more pieces than its base has") else . end
			| .[$k] = ($f + {pieces: (($base[$k].pieces // [])[:$keep] + $f.pieces)})))
	| to_entries[] | .value
	| if (.path | safe | not) or (.family | family | not) then error("unsafe path: \(.family | tojson), \(.path | tojson)") else . end
	| if (.sha256 | hex) and (.size | count) and (.mtime | type == "string" and length > 0 and (explode | all(. > 32)))
		and (.pieces | all((.segment | hex) and (.offset | count) and (.length | count) and .offset + .length <= 8388608))
		then . else error("bad entry: \(.path | tojson)") end
	| (["F", .size, .sha256, .mtime, (if .gone then "gone" else "there" end), (if .mode | mode then .mode else "0600" end), .family, .path] | map(tostring) | join("\t")),
	  (.pieces[] | ["P", .segment, .offset, .length] | map(tostring) | join("\t"))
' "$work/chain" >"$work/plan" || die 4 "manifest $chosen makes no sense"

mkdir -p -- "$dest"
say "restoring $chosen to $dest"
held='' files=0 gone=0 bad=0

# segment HASH: decode and check a segment to $work/raw, unless it is there.
segment() {
	[ "$held" != "$1" ] || return 0
	held=''
	file=$store/segments/$(printf %.2s "$1")/$1.zst
	[ -f "$file" ] || { say "segment $1 is missing"; return 1; }
	# No segment has more than 8 MiB: what would decode to more stops here, and
	# then has the wrong hash.
	zstd -qdc -- "$file" 2>"$work/err" | head -c 8388609 >"$work/raw"
	[ "$(sha256 "$work/raw")" = "$1" ] || { say "segment $1 is damaged: $(head -c 200 "$work/err")"; return 1; }
	held=$1
}

# The current file: what the F line said, and whether all went well so far.
path='' ok=1
finish() {
	[ -n "$path" ] || return 0
	if [ $ok -eq 1 ]; then
		if [ "$(wc -c <"$work/out" | tr -d ' ')" != "$size" ]; then
			say "$family/$path has not the $size bytes that were archived"
			ok=0
		elif [ "$(sha256 "$work/out")" != "$sum" ]; then
			say "$family/$path holds other bytes than were archived"
			ok=0
		fi
	fi
	if [ $ok -eq 0 ]; then
		say "error: $family/$path is damaged and was left out"
		bad=$((bad + 1))
		return 0
	fi
	to=$dest/$family/$path
	# A file that vanished may have had the name that is now a folder's.
	if ! mkdir -p -- "${to%/*}" 2>/dev/null || [ -e "$to" ]; then
		say "error: $family/$path was left out: another file is in its place"
		bad=$((bad + 1))
		return 0
	fi
	cp -- "$work/out" "$to" || die 1 "cannot write $to"
	touch -d "$mtime" -- "$to" || say "cannot set the time of $to to $mtime"
	owner=${mode#?}
	chmod "0${owner%??}00" "$to" || say "cannot set the mode of $to"
	files=$((files + 1))
	if [ "$state" = gone ]; then gone=$((gone + 1)); fi
}

while IFS=$tab read -r kind a b c d e f g; do
	case $kind in
	F)
		finish
		size=$a sum=$b mtime=$c state=$d mode=$e family=$f path=$g ok=1
		# Once more, in another language: nothing leaves the folder.
		case /$path/ in *//* | */./* | */../*) die 4 "unsafe path: $path" ;; esac
		: >"$work/out"
		;;
	P)
		[ $ok -eq 1 ] || continue
		if segment "$a"; then
			tail -c "+$((b + 1))" "$work/raw" | head -c "$c" >>"$work/out"
		else
			ok=0
		fi
		;;
	esac
done <"$work/plan"
finish

say "$files files restored, $gone of them no longer at the source when they were last archived"
[ "$bad" -eq 0 ] || die 4 "$bad files could not be restored"
[ "$damage" -eq 0 ] || die 4 "a newer generation is damaged; this is the newest whole one"

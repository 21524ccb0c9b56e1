#!/bin/sh
# Build session-keeper from this checkout, put it into place, wire its hook into
# Claude Code's user settings, and see it work. See --help.
set -eu

usage() {
	cat <<'USAGE'
usage: ./install.sh [--prefix DIR] [--dry-run]
       ./install.sh --uninstall [--purge] [--prefix DIR] [--dry-run]

Builds session-keeper from this checkout, puts its programs into DIR/bin
(default: ~/.local/bin), wires the hook into Claude Code's user settings, and
tries it: a sample session is archived by the wired command, deleted and
restored, in a temporary home of its own. No root is needed. Run it again to
update.

  --prefix DIR   where to put the programs: DIR/bin
  --uninstall    take the hook out of the settings and remove the programs;
                 the archive stays
  --purge        with --uninstall: remove state, cache and our settings as well,
                 still not the archive
  --dry-run      say what would be done, change nothing but Go's build cache
  --help         this text

Exit codes: 0 done; 1 failed; 2 wrong usage; 4 installed, but Claude Code will
not run the hook until what is named is put right; 5 refused, because something
would be lost.
USAGE
}

say() { printf '%s\n' "$*"; }
fail_with() { # CODE MESSAGE HINT...
	code=$1
	printf 'install.sh: error: %s\n' "$2" >&2
	shift 2
	for hint; do printf 'install.sh: hint: %s\n' "$hint" >&2; done
	exit "$code"
}
fail() { fail_with 1 "$@"; }
wrong() {
	printf 'install.sh: error: %s\n' "$1" >&2
	usage >&2
	exit 2
}

# The hooks last: what they start is there before them.
programs='session-keeper session-keeper-worker pre-compact-snapshot session-end-archive'
prefix=
uninstall=
purge=
dry=
while [ $# -gt 0 ]; do
	case $1 in
	--prefix)
		[ $# -ge 2 ] || wrong '--prefix needs a folder'
		prefix=$2
		shift
		;;
	--prefix=*) prefix=${1#--prefix=} ;;
	--uninstall) uninstall=yes ;;
	--purge) purge=yes ;;
	--dry-run) dry=yes ;;
	-h | --help)
		usage
		exit 0
		;;
	*) wrong "unknown argument: $1" ;;
	esac
	shift
done
[ -z "$purge" ] || [ -n "$uninstall" ] || wrong '--purge goes with --uninstall'
if [ -z "$prefix" ]; then
	[ -n "${HOME:-}" ] || fail 'HOME is not set' 'name a folder with --prefix'
	prefix=$HOME/.local
fi
case $prefix in
/*) ;;
*) prefix=$(pwd)/$prefix ;;
esac
bin=$prefix/bin
checkout=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)

# quoted prints a path as it can be typed into a shell.
quoted() {
	case $1 in
	*[!A-Za-z0-9_./~-]*) printf "'%s'" "$(printf '%s' "$1" | sed "s/'/'\\\\''/g")" ;;
	*) printf '%s' "$1" ;;
	esac
}

remove_programs() {
	for program in $programs; do
		[ -e "$bin/$program" ] || [ -L "$bin/$program" ] || continue
		rm -f -- "$bin/$program"
		say "Removed $bin/$program"
	done
}

# A program that was removed earlier is built once more for what is left to do.
new=
cleanup() { [ -z "$new" ] || rm -rf -- "$new"; }
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

build() { # PROGRAM
	(cd "$checkout" && CGO_ENABLED=0 go build -trimpath -o "$new/$1" "./cmd/$1")
}

if [ -n "$uninstall" ]; then
	keeper=$bin/session-keeper
	if [ ! -x "$keeper" ]; then
		[ -n "$purge" ] ||
			fail "there is no session-keeper in $bin" \
				'name the folder that it was installed to with --prefix' \
				'if it is uninstalled already: --uninstall --purge removes state, cache and our settings'
		say "There is no session-keeper in $bin; building one for the purge ..."
		new=$(mktemp -d "${TMPDIR:-/tmp}/session-keeper-purge.XXXXXX")
		build session-keeper ||
			fail 'session-keeper could not be built, which the purge is done with' 'nothing was removed'
		keeper=$new/session-keeper
	fi
	set -- uninstall
	[ -z "$purge" ] || set -- "$@" --purge
	[ -z "$dry" ] || set -- "$@" --dry-run
	# The hook goes out of the settings first: at no moment do they name a
	# program that is not there.
	status=0
	"$keeper" "$@" || status=$?
	[ "$status" -eq 0 ] || exit "$status"
	if [ -n "$dry" ]; then
		for program in $programs; do
			[ ! -e "$bin/$program" ] || say "Would remove $bin/$program"
		done
	else
		remove_programs
	fi
	exit 0
fi

# version_at_least HAVE WANT compares versions such as 1.26 and 1.26.3.
version_at_least() {
	[ "$(printf '%s\n%s\n' "$2" "$1" | sort -t. -k1,1n -k2,2n -k3,3n | head -n 1)" = "$2" ] ||
		[ "$1" = "$2" ]
}

want=$(sed -n 's/^go \([0-9.]*\).*/\1/p' "$checkout/go.mod")
[ -n "$want" ] || fail "$checkout is not a checkout of session-keeper: it has no go.mod"
command -v go >/dev/null 2>&1 ||
	fail "Go is needed to build session-keeper, version $want or newer, and is not installed" \
		'install it from your system, or see https://go.dev/doc/install'
# Outside of the module, so that go tells its own version and fetches no other.
have=$(cd / && GOTOOLCHAIN=local go env GOVERSION 2>/dev/null | sed 's/^go//; s/[^0-9.].*//')
[ -n "$have" ] || fail 'go does not tell its version' 'does "go version" work?'
if ! version_at_least "$have" "$want"; then
	case $(cd / && go env GOTOOLCHAIN 2>/dev/null) in
	auto* | '') say "Go $have is older than $want; go fetches the newer one for this build" ;;
	*) fail "Go $want or newer is needed, this is $have" 'see https://go.dev/doc/install' ;;
	esac
fi

if [ -n "$dry" ]; then
	say "Would build $programs with Go $have"
	say "Would put them into $bin"
	say "Would wire $bin/session-end-archive into Claude Code's user settings and try it"
	exit 0
fi

# The build goes into a folder beside the final place, so that each program
# gets there by one rename: a hook that starts meanwhile finds the old one or
# the new one.
mkdir -p -- "$bin"
new=$(mktemp -d "$bin/.session-keeper-new.XXXXXX")

say "Building with Go $have ..."
for program in $programs; do
	build "$program" ||
		fail "$program could not be built" 'nothing was installed'
	chmod 755 "$new/$program"
	"$new/$program" --version >/dev/null 2>&1 ||
		fail "$new/$program does not run" 'is the folder mounted with noexec?'
done
for program in $programs; do
	[ ! -d "$bin/$program" ] || fail "$bin/$program is a folder" 'nothing was installed'
done
for program in $programs; do
	mv -f -- "$new/$program" "$bin/$program"
	say "Installed $bin/$program"
done

undo="$(quoted "$checkout/install.sh") --uninstall"
[ "$prefix" = "${HOME:-}/.local" ] || undo="$undo --prefix $(quoted "$prefix")"
remove="rm -- $(quoted "$bin/session-keeper") $(quoted "$bin/session-keeper-worker") $(quoted "$bin/pre-compact-snapshot") $(quoted "$bin/session-end-archive")"

# 4 means: wired, but Claude Code will not run it. The self-test has the last
# word on that.
status=0
"$bin/session-keeper" install || status=$?
case $status in
0 | 4) ;;
*)
	fail 'the programs are in place, but the hook could not be wired' \
		'put right what is named above and run this again' \
		"or remove the programs: $remove"
	;;
esac
say
status=0
"$bin/session-keeper" self-test || status=$?
case $status in
0 | 4) ;;
*)
	fail 'the self-test failed: the hook is wired, but does not do its work' \
		"to undo the installation: $undo"
	;;
esac

say
case :${PATH:-}: in
*:"$bin":*) ;;
*)
	say "$bin is not on your PATH. To call session-keeper by its name, add to your shell's profile:"
	# shellcheck disable=SC2016 # meant for the profile, not for here
	say "  export PATH=$(quoted "$bin"):"'"$PATH"'
	;;
esac
say "To undo all of this:"
say "  $undo"
if [ "$status" -eq 4 ]; then
	say
	fail_with 4 'installed, but sessions are not archived until what the self-test named above is put right' \
		"then try it again: $(quoted "$bin/session-keeper") self-test"
fi

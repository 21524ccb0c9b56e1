// Session-keeper-worker archives what hooks handed off.
//
// Usage:
//
//	session-keeper-worker DIR
//
// A hook only puts a session into a spool, DIR, and starts this program, which
// outlives it: it moves what is in that spool, and in the others that are
// known, to the archive, removes what is old, and ends. At most two run for a
// spool at a time: one that works, and one that waits for it. Running it by
// hand does no harm.
//
// It prints nothing but errors. What it does is logged, one JSON object a line,
// in the state folder under log/: ids, paths, sizes and errors, never text of a
// conversation. SIGTERM ends it at the next step; the spool keeps the rest.
//
// Exit codes:
//
//	0  done, or nothing to do
//	1  a spool could not be drained; the log and stderr say why
//	2  wrong usage
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/session-keeper/session-keeper/hooklib"
	"github.com/session-keeper/session-keeper/internal/config"
	"github.com/session-keeper/session-keeper/internal/handoff"
	"github.com/session-keeper/session-keeper/internal/keeper"
)

const name = handoff.WorkerName

const usage = `usage: session-keeper-worker DIR

Archives what hooks left in the spool DIR, and in the others that are known.
Hooks start it; running it by hand does no harm.

  -version   print the version
  -h         print this

Exit codes: 0 done or nothing to do, 1 a spool could not be drained, 2 wrong usage.
`

func main() { os.Exit(run()) }

func run() int {
	flag.Usage = func() { fmt.Fprint(os.Stderr, usage) }
	version := flag.Bool("version", false, "")
	flag.Parse()
	if *version {
		fmt.Println(name, hooklib.BuildVersion())
		return 0
	}
	if flag.NArg() != 1 {
		flag.Usage()
		return 2
	}
	log := handoff.OpenLog(name, os.Stderr)
	settings, err := config.Load(config.SystemEnv())
	if err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGHUP, os.Interrupt)
		defer stop()
		err = keeper.New(settings, log).RunWorker(ctx, flag.Arg(0))
	}
	if err != nil {
		log.Log(hooklib.Error, "failed", "error", err)
		fmt.Fprintf(os.Stderr, "%s: error: %v\n", name, err)
		return 1
	}
	return 0
}

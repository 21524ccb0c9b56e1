// Command session-keeper is the tool for people: it finds, shows, checks and
// brings back the Claude Code sessions that the hooks have archived, and it
// wires the hooks into Claude Code and out of it again.
//
//	$ session-keeper install
//	$ session-keeper list
//	$ session-keeper restore last && claude --resume ID
//
// Exit codes: 0 done; 1 failed; 2 wrong usage; 3 not found or ambiguous;
// 4 damage found; 5 refused to overwrite; 130 interrupted.
package main

import "os"

func main() { os.Exit(run(processApp(), os.Args[1:])) }

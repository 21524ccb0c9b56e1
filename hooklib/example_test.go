package hooklib_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/session-keeper/session-keeper/hooklib"
)

// A hook that tells which session has ended. As a program, its main is
//
//	func main() { os.Exit(hooklib.Main(hook)) }
func Example() {
	hook := hooklib.Hook{
		Name: "say-goodbye",
		Handle: func(_ context.Context, c *hooklib.Call) error {
			switch e := c.Event.(type) {
			case *hooklib.SessionEnd:
				fmt.Fprintf(c.Stdout, "session %s ended: %s\n", e.SessionID, e.Reason)
			default:
				c.Log.Log(hooklib.Info, "not for this hook", "event", e.Base().Name)
			}
			return nil
		},
	}
	stdin := strings.NewReader(`{"session_id":"84784f3a","hook_event_name":"SessionEnd","reason":"clear"}`)
	code := hooklib.Run(hook, nil, stdin, os.Stdout, os.Stderr)
	fmt.Println("exit code", code)
	// Output:
	// session 84784f3a ended: clear
	// exit code 0
}

// A failure that the user must see has a hint, and the exit code is 1.
func ExampleFailure() {
	hook := hooklib.Hook{
		Name: "say-goodbye",
		Handle: func(context.Context, *hooklib.Call) error {
			return &hooklib.Failure{Err: fmt.Errorf("the disk is full"), Hint: "make room"}
		},
	}
	code := hooklib.Run(hook, nil, strings.NewReader(`{}`), os.Stdout, os.Stdout)
	fmt.Println("exit code", code)
	// Output:
	// say-goodbye: error: the disk is full
	// say-goodbye: hint: make room
	// exit code 1
}

// Nothing of an event is lost: what this package does not know is in Extra.
func ExampleReadEvent() {
	stdin := strings.NewReader(`{"hook_event_name":"Brewed","session_id":"84784f3a","cups":2}`)
	event, err := hooklib.ReadEvent(stdin, time.Now().Add(time.Second))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(event.Base().Name, string(event.Base().Extra["cups"]))
	// Output: Brewed 2
}
